#include <cstring>
#include <optional>

#include "absl/strings/str_format.h"
#include "core/token_format.h"
#include "worker/data/token_layout.h"

namespace atl {

absl::StatusOr<TokenLayout> LlmcLayout(std::span<const std::byte> bytes) {
  if (bytes.size() < kTokenHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d bytes, shorter than the %d-byte header; tokenise the text again "
                        "(atoll-data tokenize)",
                        bytes.size(), kTokenHeaderBytes));
  }
  int32_t words[3];
  std::memcpy(words, bytes.data(), sizeof(words));
  const std::optional<TokenFormat> format = FormatOfMagic(words[0]);
  if (!format) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "starts with %d instead of a magic number (%d for uint16 tokens, %d for uint32): not an "
        "llm.c token file. Megatron's files need their .idx file beside them, and datatrove's "
        "their .metadata or .index file",
        words[0], kNarrowTokens.magic, kWideTokens.magic));
  }
  if (words[1] != format->version) {
    return absl::InvalidArgumentError(
        absl::StrFormat("format version %d; with the magic number %d, only version %d is supported", words[1],
                        words[0], format->version));
  }
  if (words[2] < 0) return absl::InvalidArgumentError(absl::StrFormat("negative token count %d", words[2]));
  const TokenLayout layout{.format = "llm.c",
                           .offset = kTokenHeaderBytes,
                           .count = static_cast<uint64_t>(words[2]),
                           .width = format->width};
  const uint64_t expected = kTokenHeaderBytes + layout.count * BytesPerToken(layout.width);
  if (bytes.size() == expected) return layout;
  return absl::InvalidArgumentError(absl::StrFormat(
      "the header says %d tokens (%d bytes), but the file has %d bytes: it is %s; copy or tokenise it again",
      layout.count, expected, bytes.size(), bytes.size() < expected ? "truncated" : "too long"));
}

}  // namespace atl
