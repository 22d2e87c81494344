#ifndef ATOLL_CLI_DOCTOR_NETWORK_H_
#define ATOLL_CLI_DOCTOR_NETWORK_H_

#include <string>
#include <vector>

#include "cli/doctor/check.h"
#include "cli/rpc_client.h"
#include "common/clock.h"

namespace atl {

struct NetworkTarget {
  std::string coordinator;
  std::string admin;
  // A coordinator must answer there. Otherwise a free port is enough.
  bool coordinator_given = false;
  bool admin_given = false;
  bool starts_here = false;  // this machine runs the coordinator, perhaps not yet: both ports may be free
  bool checks_admin = true;  // false on a worker's machine, because the admin port denies workers
  std::string start_command = {};  // how to start the coordinator; empty: not known
  std::string run = {};            // the run that the coordinator should serve; empty: any
  Duration deadline = Seconds(3);
  SecurityPtr security = ChannelSecurity::Plain();
  WaitNotice notice = nullptr;
};

/// Checks whether the two ports answer, the round-trip time, the clock difference, and whether others can
/// read the traffic. Before a start: whether the coordinator's ports are free. Makes only calls that the
/// credentials of `security` allow, as far as it can tell: the coordinator logs and counts denied calls.
std::vector<Check> CheckNetwork(const NetworkTarget& target, const Clock& clock);

/// The verdicts without a network, for tests.
Check JudgeRoundTrip(const std::string& name, const std::string& address, double seconds);
/// A coordinator answers at `admin` and serves `found`; `wanted` as NetworkTarget::run.
Check JudgeRun(const std::string& admin, const std::string& found, const std::string& wanted);
/// The coordinator's clock minus this machine's clock, within `uncertainty_s`.
Check JudgeClock(double difference_s, double uncertainty_s);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_NETWORK_H_
