#include "worker/data/token_file_writer.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "core/token_format.h"
#include "worker/data/token_view.h"

namespace atl {

absl::StatusOr<TokenFileWriter> TokenFileWriter::Create(std::string path, TokenWidth width) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path + ".tmp", OpenMode::kTruncate));
  return TokenFileWriter(std::move(file), std::move(path), width);
}

TokenFileWriter::~TokenFileWriter() {
  if (!file_.is_open()) return;
  RemoveFile(file_.path()).IgnoreError();
}

absl::Status TokenFileWriter::Append(std::span<const TokenId> tokens) {
  if (tokens_ + tokens.size() > kMaxTokensPerFile) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "token file %s: more than the %d tokens that one file can hold; split it", path_, kMaxTokensPerFile));
  }
  PackTokens(tokens, width_, packed_);
  ATOLL_RETURN_IF_ERROR(file_.WriteAt(kTokenHeaderBytes + tokens_ * BytesPerToken(width_), packed_));
  digest_.Update(packed_);
  tokens_ += tokens.size();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenFileWriter::Finish() {
  std::array<int32_t, kTokenHeaderWords> header{};
  header[0] = FormatOf(width_).magic;
  header[1] = FormatOf(width_).version;
  header[2] = static_cast<int32_t>(tokens_);
  ATOLL_RETURN_IF_ERROR(file_.WriteAt(0, std::as_bytes(std::span(header))));
  ATOLL_RETURN_IF_ERROR(file_.Sync());
  const std::string temporary = file_.path();
  ATOLL_RETURN_IF_ERROR(file_.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(temporary, path_));
  return digest_.FinishHex();
}

}  // namespace atl
