#include "worker/app/follower_probes.h"

#include <utility>

#include "common/status.h"

namespace atl {

absl::StatusOr<std::unique_ptr<FollowerProbes>> FollowerProbes::Start(const WorkerFlags& flags,
                                                                      const Clock* clock, const Logger& log) {
  const MemberFlags& member = flags.member;
  ATOLL_RETURN_IF_ERROR(ReadyFile::Check(member.ready_file));
  std::unique_ptr<FollowerProbes> probes(new FollowerProbes(member.ready_file, log));
  probes->ready_.OnJoined(JoinedRun(), /*rejoin=*/false);
  if (member.metrics_listen.empty()) return probes;
  ATOLL_ASSIGN_OR_RETURN(auto security, ChannelSecurity::Create(member.security, clock, log));
  auto monitoring = WorkerMonitoring::Start(
      {.program = "atoll-worker", .listen = member.metrics_listen, .security = std::move(security)}, log);
  if (monitoring.ok()) {
    probes->monitoring_ = *std::move(monitoring);
  } else {
    log.Warning("this rank serves no metrics", {{"because", std::string(monitoring.status().message())}});
  }
  return probes;
}

}  // namespace atl
