#ifndef ATOLL_CLIENT_ENGINE_ENGINE_OPTIONS_H_
#define ATOLL_CLIENT_ENGINE_ENGINE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ipc/messages.h"
#include "client/setup/member_flags.h"

namespace atl {

/// The options of atl_open and atl_pull (atoll/client.h).
struct EngineOptions {
  MemberFlags member;
  LogFlags log;
  std::string device = "cpu";
  std::string device_name;
  int threads = 0;
  std::string base_fingerprint;
  std::string data_fingerprint;
};

/// Reads them by the rules of atoll-worker's command line. InvalidArgument names the option: unknown, given
/// twice, a value out of range, or missing although required (state-dir when `joins`).
absl::StatusOr<EngineOptions> ParseEngineOptions(const std::vector<ipc::Option>& given, bool joins);

/// The names of all options, without dashes.
std::vector<std::string> EngineOptionNames();

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_ENGINE_OPTIONS_H_
