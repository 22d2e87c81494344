#ifndef ATOLL_CLI_ADDRESS_H_
#define ATOLL_CLI_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"

namespace atl {

/// Checks the host and the port of a coordinator: a name or an IP address, then a port above 0.
/// InvalidArgument names the text and the expected form.
absl::StatusOr<BindAddress> ParseTarget(const std::string& address);

}  // namespace atl

#endif  // ATOLL_CLI_ADDRESS_H_
