#ifndef ATOLL_CLI_ADDRESS_H_
#define ATOLL_CLI_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/bind_address.h"

namespace atl {

/// Host and port of a coordinator: a name or a number, then a port that is not 0. InvalidArgument names the
/// text and the form that is wanted.
absl::StatusOr<BindAddress> ParseTarget(const std::string& address);

}  // namespace atl

#endif  // ATOLL_CLI_ADDRESS_H_
