#include "worker/data/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/errno.h"
#include "common/input_file.h"
#include "common/status.h"
#include "worker/data/token_layout.h"

namespace atl {
namespace {

// The payload is used in place.
static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kDigestTokens = uint64_t{1} << 20;

template <typename Token>
absl::Status CheckTokens(const std::string& path, std::span<const Token> tokens, uint32_t vocabulary) {
  if (vocabulary > std::numeric_limits<Token>::max()) return absl::OkStatus();
  Token largest = 0;
  for (const Token token : tokens) largest = std::max(largest, token);
  if (largest < vocabulary || tokens.empty()) return absl::OkStatus();
  const auto first = std::find_if(tokens.begin(), tokens.end(), [&](Token t) { return t >= vocabulary; });
  return absl::InvalidArgumentError(absl::StrFormat(
      "token file %s: token %d at position %d is outside the vocabulary of %d (largest token: "
      "%d); give the tokenizer's vocabulary (in the model's section of the run, atoll-data "
      "adopt --vocabulary) or use other files",
      path, *first, first - tokens.begin(), vocabulary, largest));
}

}  // namespace

absl::StatusOr<TokenFile> TokenFile::Open(const std::string& path, uint32_t vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ATOLL_ASSIGN_OR_RETURN(FileDescriptor descriptor, OpenInput(path, InputKind::kFile));
  ATOLL_ASSIGN_OR_RETURN(const TokenLayout layout, FindTokenLayout(path, file.bytes()));
  const TokenView tokens(file.bytes().subspan(layout.offset), layout.width);
  ATOLL_RETURN_IF_ERROR(
      tokens.VisitAs([&](const auto& typed) { return CheckTokens(path, typed, vocabulary); }));
  return TokenFile(std::move(file), std::move(descriptor), layout, tokens);
}

absl::Status TokenFile::Read(uint64_t first, std::span<TokenId> out) const {
  std::vector<std::byte> bytes(out.size() * BytesPerToken(tokens_.width()));
  ATOLL_RETURN_IF_ERROR(ReadBytes(first, bytes));
  UnpackTokens(bytes, tokens_.width(), out);
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenFile::Digest(const std::function<bool()>& go_on) const {
  const size_t each = BytesPerToken(tokens_.width());
  std::vector<std::byte> piece;
  Sha256 digest;
  for (uint64_t first = 0; first < size(); first += piece.size() / each) {
    if (!go_on()) return absl::CancelledError("the check of the token files was stopped");
    piece.resize(std::min(kDigestTokens, size() - first) * each);
    ATOLL_RETURN_IF_ERROR(ReadBytes(first, piece));
    digest.Update(std::span<const std::byte>(piece));
  }
  return digest.FinishHex();
}

int64_t TokenFile::ModifiedNanos() const {
  struct stat info {};
  if (::fstat(descriptor_.get(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

absl::Status TokenFile::ReadBytes(uint64_t first, std::span<std::byte> bytes) const {
  const size_t each = BytesPerToken(tokens_.width());
  const uint64_t begin = layout_.offset + (first_ + first) * each;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, absl::StrFormat("read token file %s", path()));
    if (got == 0) {
      return absl::NotFoundError(
          absl::StrFormat("token file %s: byte %d is missing, and was there when the file was opened: it was "
                          "truncated while in "
                          "use; copy or tokenise it again, then start the worker again",
                          path(), begin + done));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace atl
