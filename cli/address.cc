#include "cli/address.h"

#include "absl/strings/str_format.h"

namespace atl {
namespace {

/// One port, as the user names it.
struct Port {
  const char* name;
  const char* option;
  const char* variable;
};
constexpr Port kAdmin = {"admin port", "--admin", "ATOLL_ADMIN"};
constexpr Port kData = {"data port", "--coordinator", "ATOLL_COORDINATOR"};

std::string SourceText(const Port& port, const PortAddress& given) {
  if (given.source == AddressSource::kCommandLine) return absl::StrFormat("comes from %s", port.option);
  if (given.source == AddressSource::kEnvironment) return absl::StrFormat("comes from %s", port.variable);
  return "is only the default";
}

absl::Status Mixed(const std::string& command, const Port& port, const PortAddress& called, const Port& other,
                   const PortAddress& given) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s calls the coordinator's %s, whose address %s %s, but the address of the %s, %s, %s: they could "
      "belong to different runs; also give %s HOST:PORT",
      command, port.name, called.address, SourceText(port, called), other.name, given.address,
      SourceText(other, given), port.option));
}

}  // namespace

absl::StatusOr<BindAddress> ParseTarget(const std::string& address) {
  auto parsed = ParseBindAddress(address);
  if (parsed.ok() && parsed->port != 0) return parsed;
  return absl::InvalidArgumentError(absl::StrFormat(
      "'%s' is not an address: expected HOST:PORT, for example 127.0.0.1:7601 or coordinator.example:7601",
      address));
}

absl::Status CheckDataPort(const char* command, const PortAddress& data, const PortAddress& admin) {
  if (data.source >= admin.source) return absl::OkStatus();
  return Mixed(command, kData, data, kAdmin, admin);
}

absl::Status CheckAdminPort(const PortAddress& admin, const PortAddress& data) {
  if (admin.on_command_line() || !data.on_command_line()) return absl::OkStatus();
  return Mixed("this command", kAdmin, admin, kData, data);
}

absl::Status CheckBothPorts(const char* command, const PortAddress& admin, const PortAddress& data) {
  const auto mixed = [](const PortAddress& one, const PortAddress& other) {
    return one.source == AddressSource::kEnvironment && other.on_command_line();
  };
  if (mixed(admin, data)) return Mixed(command, kAdmin, admin, kData, data);
  if (mixed(data, admin)) return Mixed(command, kData, data, kAdmin, admin);
  return absl::OkStatus();
}

}  // namespace atl
