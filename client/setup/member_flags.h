#ifndef ATOLL_CLIENT_SETUP_MEMBER_FLAGS_H_
#define ATOLL_CLIENT_SETUP_MEMBER_FLAGS_H_

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/log.h"
#include "protos/transport/channel_security.h"

namespace atl {

/// The options of every process that becomes a member of a run.
struct MemberFlags {
  std::string coordinator = "127.0.0.1:7600";
  std::string name;
  std::string state_dir;
  std::string role = "trainer";
  std::string metrics_listen;
  std::string expect_run;
  std::string ready_file;
  std::string peer_keys;
  bool stop_on_any_difference = false;
  double drain_seconds = 20;
  uint32_t pull_streams = 1;
  bool wait_forever = false;
  ClientSecurityFlags security;
};
void AddMemberFlags(CLI::App& app, MemberFlags& flags);

/// InvalidArgument when the coordinator is no address or the name is not a worker's: before anything is
/// written.
absl::Status CheckMemberFlags(const MemberFlags& flags);

struct LogFlags {
  std::string format = "human";
  std::string level = "info";
  std::string file;  // empty: standard error
};
/// --log-format and --log-level.
void AddLogFlags(CLI::App& app, LogFlags& flags);
absl::StatusOr<Logger> MakeLogger(const LogFlags& flags);

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_MEMBER_FLAGS_H_
