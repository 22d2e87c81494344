#include "cli/address.h"

#include "absl/strings/str_format.h"

namespace atl {

absl::StatusOr<BindAddress> ParseTarget(const std::string& address) {
  auto parsed = ParseBindAddress(address);
  if (parsed.ok() && parsed->port != 0) return parsed;
  return absl::InvalidArgumentError(absl::StrFormat(
      "'%s' is not an address: expected HOST:PORT, for example 127.0.0.1:7601 or coordinator.example:7601",
      address));
}

}  // namespace atl
