#include "worker/data/token_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/input_file.h"
#include "common/status.h"
#include "core/token_format.h"

namespace atl {
namespace {

// The payload is used in place.
static_assert(std::endian::native == std::endian::little);

/// What the header says.
struct TokenHeader {
  uint64_t count = 0;
  TokenWidth width = TokenWidth::kTwoBytes;
};

absl::StatusOr<TokenHeader> CheckHeader(const MappedFile& file) {
  const std::string& path = file.path();
  if (file.size() < kTokenHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: %d bytes, shorter than the %d-byte header; tokenise the text again "
                        "(atoll-data tokenize)",
                        path, file.size(), kTokenHeaderBytes));
  }
  int32_t words[3];
  std::memcpy(words, file.bytes().data(), sizeof(words));
  const std::optional<TokenFormat> format = FormatOfMagic(words[0]);
  if (!format) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: starts with %d instead of a magic number (%d for uint16 tokens, %d "
                        "for uint32): not an "
                        "llm.c token file",
                        path, words[0], kNarrowTokens.magic, kWideTokens.magic));
  }
  if (words[1] != format->version) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: format version %d; with the magic number %d, only version %d is "
                        "supported",
                        path, words[1], words[0], format->version));
  }
  if (words[2] < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("token file %s: negative token count %d", path, words[2]));
  }
  return TokenHeader{.count = static_cast<uint64_t>(words[2]), .width = format->width};
}

absl::Status CheckSize(const MappedFile& file, const TokenHeader& header) {
  const uint64_t expected = kTokenHeaderBytes + header.count * BytesPerToken(header.width);
  if (file.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "token file %s: the header says %d tokens (%d bytes), but the file has %d bytes: it is %s; copy or "
      "tokenise it "
      "again",
      file.path(), header.count, expected, file.size(), file.size() < expected ? "truncated" : "too long"));
}

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
  ATOLL_ASSIGN_OR_RETURN(const TokenHeader header, CheckHeader(file));
  ATOLL_RETURN_IF_ERROR(CheckSize(file, header));
  const TokenView tokens(file.bytes().subspan(kTokenHeaderBytes), header.width);
  ATOLL_RETURN_IF_ERROR(
      tokens.VisitAs([&](const auto& typed) { return CheckTokens(path, typed, vocabulary); }));
  return TokenFile(std::move(file), std::move(descriptor), tokens);
}

absl::Status TokenFile::Read(uint64_t first, std::span<TokenId> out) const {
  const size_t each = BytesPerToken(tokens_.width());
  std::vector<std::byte> bytes(out.size() * each);
  const uint64_t begin = kTokenHeaderBytes + (first_ + first) * each;
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
  UnpackTokens(bytes, tokens_.width(), out);
  return absl::OkStatus();
}

}  // namespace atl
