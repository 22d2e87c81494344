#include "worker/data/input/text_batch.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "common/digest.h"

namespace atl {

absl::Status BadLineError(const std::string& path, const BadLine& bad) {
  return absl::InvalidArgumentError(
      absl::StrFormat("text file %s, line %d: %s; correct the line, or leave such lines out with "
                      "--skip-bad-lines",
                      path, bad.line, bad.why));
}

uint64_t DocumentHash(std::string_view text) { return DocumentHashOf(Sha256Hex(text)); }

uint64_t DocumentHashOf(std::string_view sha256_hex) {
  uint64_t hash = 0;
  std::from_chars(sha256_hex.data(), sha256_hex.data() + 16, hash, 16);
  return hash;
}

}  // namespace atl
