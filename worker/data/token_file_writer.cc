#include "worker/data/token_file_writer.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/data/token_format.h"
#include "worker/data/token_view.h"

namespace atl {
namespace {

/// What kTokenMagic says.
constexpr TokenWidth kWidth = TokenWidth::kTwoBytes;

}  // namespace

absl::StatusOr<TokenFileWriter> TokenFileWriter::Create(std::string path) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path + ".tmp", OpenMode::kTruncate));
  return TokenFileWriter(std::move(file), std::move(path));
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
  PackTokens(tokens, kWidth, packed_);
  ATOLL_RETURN_IF_ERROR(file_.WriteAt(kTokenHeaderBytes + tokens_ * BytesPerToken(kWidth), packed_));
  digest_.Update(packed_);
  tokens_ += tokens.size();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenFileWriter::Finish() {
  std::array<int32_t, kTokenHeaderWords> header{};
  header[0] = kTokenMagic;
  header[1] = kTokenVersion;
  header[2] = static_cast<int32_t>(tokens_);
  ATOLL_RETURN_IF_ERROR(file_.WriteAt(0, std::as_bytes(std::span(header))));
  ATOLL_RETURN_IF_ERROR(file_.Sync());
  const std::string temporary = file_.path();
  ATOLL_RETURN_IF_ERROR(file_.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(temporary, path_));
  return digest_.FinishHex();
}

}  // namespace atl
