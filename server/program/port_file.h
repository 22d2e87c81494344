#ifndef ATOLL_SERVER_PROGRAM_PORT_FILE_H_
#define ATOLL_SERVER_PROGRAM_PORT_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace atl {

/// Addresses of the ports that serve; empty: there is no such port.
struct PortAddresses {
  std::string data;
  std::string admin;
  std::string metrics;
  std::string health;
  std::string web;
};

/// Of --port-file, before the start: OK for an empty path, and when a coordinator may write to it: it is not
/// there, is empty, or holds what a coordinator wrote (an earlier one may have been killed). InvalidArgument
/// for anything else, which is kept.
absl::Status CheckPortFile(const std::string& path);

/// Replaces the file: a JSON object with the addresses and the id of this process.
absl::Status WritePortFile(const std::string& path, const PortAddresses& addresses);

}  // namespace atl

#endif  // ATOLL_SERVER_PROGRAM_PORT_FILE_H_
