#ifndef ATOLL_CLI_ADDRESS_H_
#define ATOLL_CLI_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/bind_address.h"

namespace atl {

/// Checks the host and the port of a coordinator: a name or an IP address, then a port above 0.
/// InvalidArgument names the text and the expected form.
absl::StatusOr<BindAddress> ParseTarget(const std::string& address);

/// Where an address came from. A later one beats an earlier one.
enum class AddressSource { kDefault, kEnvironment, kCommandLine };

/// The address of one of the coordinator's two ports.
struct PortAddress {
  std::string address;
  AddressSource source = AddressSource::kDefault;

  bool given() const { return source != AddressSource::kDefault; }
  bool on_command_line() const { return source == AddressSource::kCommandLine; }
};

/// Checks that a command which calls one port cannot reach another run than the user means, because only the
/// other port's address was given, or was given in the stronger way. `command` is named in the error.
/// InvalidArgument names both addresses, where they came from, and what to give.
absl::Status CheckDataPort(const char* command, const PortAddress& data, const PortAddress& admin);
/// The same for the admin port. ATOLL_COORDINATOR alone is accepted, because workers need it as well.
absl::Status CheckAdminPort(const PortAddress& admin, const PortAddress& data);
/// For a command that calls both ports: neither address may come from the environment if the other one is on
/// the command line.
absl::Status CheckBothPorts(const char* command, const PortAddress& admin, const PortAddress& data);

}  // namespace atl

#endif  // ATOLL_CLI_ADDRESS_H_
