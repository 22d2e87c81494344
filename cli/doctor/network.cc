#include "cli/doctor/network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cli/address.h"
#include "cli/exit_code.h"
#include "cli/rpc_client.h"
#include "common/human.h"
#include "common/status.h"
#include "grpcpp/channel.h"

namespace atl {
namespace {

constexpr int kProbes = 5;
constexpr double kLongRoundTrip = 0.5;
constexpr double kClockDifference = 5;
constexpr double kSoon = 14 * 86400;
constexpr char kMetricsAddress[] = "127.0.0.1:7602";  // default of the coordinator's --metrics-listen
// Under names of observers, every caller that the data port knows may read (server/access/permissions.h).
constexpr char kPingName[] = "observer-doctor";

/// The shortest of a few calls, which approximates the network's round trip.
absl::StatusOr<Duration> Fastest(const Clock& clock, const std::function<absl::Status()>& call) {
  Duration best = Duration::max();
  for (int i = 0; i < kProbes; ++i) {
    const MonoTime started = clock.Now();
    ATOLL_RETURN_IF_ERROR(call());
    best = std::min(best, clock.Now() - started);
  }
  return best;
}

/// The coordinator answered that this caller has no right to the call.
bool IsDenied(const absl::Status& status) {
  return IsFromCoordinator(status) && (absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status));
}

/// Sends a heartbeat of no member. The coordinator rejects it, which shows that a coordinator answers; it
/// changes nothing.
absl::Status PingDataPort(v1::Coordinator::Stub& stub, const NetworkTarget& target) {
  grpc::ClientContext context;
  target.security->Authorize(context);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(target.deadline));
  v1::HeartbeatRequest request;
  request.mutable_worker()->set_worker(kPingName);
  v1::HeartbeatReply reply;
  const grpc::Status status = stub.Heartbeat(&context, request, &reply);
  const absl::Status translated =
      status.ok() ? absl::OkStatus() : FromGrpcStatus(status, target.coordinator, CoordinatorPort::kData);
  const bool answered = !absl::IsUnavailable(translated) && !absl::IsUnimplemented(translated);
  return answered && !IsDenied(translated) ? absl::OkStatus() : translated;
}

/// A socket can listen there: nobody does now.
bool IsFree(const std::string& address) {
  const auto target = ParseTarget(address);
  return target.ok() && CheckBindable(*target).ok();
}

/// The verdict if only the admin port answers. Not an error: an operator needs only a forwarded admin port.
Check NotForwarded(const NetworkTarget& target) {
  return Warn(
      "data port",
      absl::StrFormat("not checked: nothing answers on %s, but a coordinator answers on the admin port %s",
                      target.coordinator, target.admin),
      "workers, `events` and `export` need it: forward it too, or give --coordinator HOST:PORT");
}

/// The verdict if only the data port was given, as on a worker's machine: the default admin port need not
/// belong to that coordinator.
Check AdminPortOfOthers(const std::string& address, const absl::Status& why) {
  return Warn(
      "admin port",
      absl::StrFormat("not checked: %s does not answer this caller: %s", address, std::string(why.message())),
      "workers do not need this port; operators: give --admin HOST:PORT");
}

Check NoAnswer(const NetworkTarget& network, CoordinatorPort port, const absl::Status& why) {
  const bool data = port == CoordinatorPort::kData;
  const std::string name = data ? "data port" : "admin port";
  const std::string& address = data ? network.coordinator : network.admin;
  const auto target = ParseTarget(address);
  const absl::Status bindable = target.ok() ? CheckBindable(*target) : target.status();
  const bool given = data ? network.coordinator_given : network.admin_given;
  if (given && !(network.starts_here && (bindable.ok() || absl::IsUnavailable(bindable)))) {
    return Fail(
        name, std::string(why.message()),
        "start the coordinator, or correct the address; check firewalls and --listen, --admin-listen, "
        "--insecure-bind");
  }
  if (bindable.ok()) return Ok(name, address + " is free: no coordinator there yet");
  const std::string found = network.security->WhyNoConnection(address, "", port);
  if (!data && network.coordinator_given)
    return AdminPortOfOthers(address, found.empty() ? why : absl::UnavailableError(found));
  if (!found.empty()) {
    return Fail(name, absl::StrFormat("%s is in use: %s", address, found),
                "if this is the run's coordinator, follow that advice; otherwise stop that program, or give "
                "the coordinator another port");
  }
  return Fail(
      name,
      absl::StrFormat("%s is in use, and not by a coordinator: %s", address, std::string(bindable.message())),
      "stop that program, or give the coordinator another port");
}

/// `admin_answers`: a coordinator answers on the admin port.
Check CheckDataPort(const NetworkTarget& target, bool admin_answers, const Clock& clock) {
  const auto no_answer = [&](const absl::Status& why) {
    if (admin_answers && !target.coordinator_given) return NotForwarded(target);
    return NoAnswer(target, CoordinatorPort::kData, why);
  };
  const auto channel = OpenChannel(target.coordinator, *target.security);
  const auto stub = v1::Coordinator::NewStub(channel);
  const absl::Status connected =
      AwaitConnection(*channel, target.coordinator, *target.security, target.deadline, CoordinatorPort::kData,
                      /*cancelled=*/nullptr, target.notice);
  if (!connected.ok()) return no_answer(connected);
  const auto trip = Fastest(clock, [&] { return PingDataPort(*stub, target); });
  if (IsDenied(trip.status())) {
    return Fail("data port",
                absl::StrFormat("a coordinator answers on %s and denies this caller: %s", target.coordinator,
                                std::string(trip.status().message())),
                "give the certificate or the token of this worker (--tls-cert, --token-file)");
  }
  if (!trip.ok()) return no_answer(trip.status());
  return JudgeRoundTrip("data port", target.coordinator, ToSeconds(*trip));
}

struct AdminChecks {
  bool answers = false;
  std::vector<Check> checks;
};

/// A worker's machine has the worker's certificate or token, which the admin port denies.
Check JudgeDenied(const NetworkTarget& target, const absl::Status& why) {
  const std::string text = absl::StrFormat("a coordinator answers on %s and denies this caller: %s",
                                           target.admin, std::string(why.message()));
  if (!target.admin_given) return Ok("admin port", text + "; workers do not need this port");
  return Fail("admin port", text, "give the certificate or the token of an operator or an observer");
}

/// The names that docs/guides/security.md gives to workers.
bool HasWorkersCertificate(const ChannelSecurity& security) {
  const auto set = security.certificates();
  return set != nullptr && std::ranges::any_of(set->facts.uris, [](const std::string& uri) {
           return absl::StartsWith(uri, "spiffe://") && absl::StrContains(uri, "/worker/");
         });
}

/// Also checks the coordinator's wall clock, if a recent message has a time.
AdminChecks CheckAdminPort(const NetworkTarget& target, const Clock& clock) {
  if (!target.checks_admin || (!target.admin_given && HasWorkersCertificate(*target.security))) {
    return {
        .answers = false,
        .checks = {Ok("admin port", absl::StrFormat("%s is not checked: workers do not need it; operators "
                                                    "give --admin HOST:PORT",
                                                    target.admin))}};
  }
  AdminClient client(target.admin, target.deadline, "", target.security, target.notice);
  v1::GetStatusReply status;
  double difference = 0;
  const auto trip = Fastest(clock, [&]() -> absl::Status {
    const WallTime before = clock.WallNow();
    ATOLL_ASSIGN_OR_RETURN(status, client.GetStatus(1));
    const WallTime middle = before + (clock.WallNow() - before) / 2;
    difference = static_cast<double>(status.unix_nanos() - middle.time_since_epoch().count()) * 1e-9;
    return absl::OkStatus();
  });
  if (IsDenied(trip.status())) return {.answers = true, .checks = {JudgeDenied(target, trip.status())}};
  if (!trip.ok()) {
    return {.answers = false, .checks = {NoAnswer(target, CoordinatorPort::kAdmin, trip.status())}};
  }
  std::vector<Check> checks = {JudgeRoundTrip("admin port", target.admin, ToSeconds(*trip))};
  checks.push_back(JudgeRun(target.admin, status.config().run().name(), target.run));
  if (status.unix_nanos() != 0) checks.push_back(JudgeClock(difference, ToSeconds(*trip) / 2));
  return {.answers = true, .checks = std::move(checks)};
}

Check OwnCertificate(const CertificateSet& set, const Clock& clock) {
  const double left_s = ToSeconds(set.facts.not_after - clock.WallNow());
  const std::string text =
      absl::StrFormat("ours (%s) is valid until %s", set.facts.subject, UtcMinute(set.facts.not_after));
  if (left_s > kSoon) return Ok("certificates", text);
  return Warn("certificates", text, "replace the certificate files; programs reload them without a restart");
}

Check Certificates(const NetworkTarget& target, const Clock& clock) {
  const auto set = target.security->certificates();
  if (set != nullptr && !set->certificate.empty()) return OwnCertificate(*set, clock);
  if (set != nullptr) return Ok("certificates", "TLS, without a client certificate");
  const auto local = [](const std::string& address) {
    const auto parsed = ParseTarget(address);
    return parsed.ok() && IsLoopback(*parsed);
  };
  if (local(target.coordinator) && (!target.checks_admin || local(target.admin))) {
    return Ok("certificates", "none configured; nothing leaves this machine");
  }
  return Warn("certificates", "none configured: anyone on the network path can read and change the traffic",
              "give --tls-ca, or use a network that you trust or a tunnel (WireGuard, ssh -L)");
}

/// Nothing listens on either port, and none has to: a coordinator can be started.
bool IsBeforeStart(const NetworkTarget& target) {
  const bool may_be_free = target.starts_here || (!target.coordinator_given && !target.admin_given);
  return may_be_free && target.checks_admin && IsFree(target.coordinator) && IsFree(target.admin);
}

std::vector<Check> ChecksBeforeStart(const NetworkTarget& target) {
  constexpr char kFree[] = " is free: no coordinator there yet";
  std::vector<Check> checks = {Ok("data port", target.coordinator + kFree),
                               Ok("admin port", target.admin + kFree)};
  if (target.start_command.empty()) return checks;
  const auto metrics = ParseTarget(kMetricsAddress);
  const absl::Status bindable = metrics.ok() ? CheckBindable(*metrics) : metrics.status();
  if (bindable.ok()) {
    checks.push_back(Ok("metrics port", std::string(kMetricsAddress) + " is free"));
  } else {
    checks.push_back(
        Warn("metrics port", std::string(NameOption(bindable, "--metrics-listen", kMetricsAddress).message()),
             "start the coordinator with another --metrics-listen, or with --metrics-listen ''"));
  }
  checks.push_back(Ok("coordinator", "not running yet"));
  checks.back().advice = "start it: " + target.start_command;
  return checks;
}

}  // namespace

Check JudgeRoundTrip(const std::string& name, const std::string& address, double seconds) {
  const std::string text = absl::StrFormat("%s answers in %s", address, HumanDuration(Seconds(seconds)));
  if (seconds < kLongRoundTrip) return Ok(name, text);
  return Warn(name, text, "a lease must outlast several round trips: raise round.lease_s");
}

Check JudgeRun(const std::string& admin, const std::string& found, const std::string& wanted) {
  const std::string text = absl::StrFormat("%s serves run '%s'", admin, found);
  if (wanted.empty() || wanted == found) return Ok("run", text);
  return Warn("run", absl::StrFormat("%s, but the configuration is for run '%s'", text, wanted),
              "give this run's coordinator other ports (--listen, --admin-listen, --metrics-listen, "
              "--web-listen), or ask the one that serves it (--admin, --coordinator)");
}

Check JudgeClock(double difference_s, double uncertainty_s) {
  const std::string text = absl::StrFormat(
      "the coordinator's clock is %s %s, within %s", HumanDuration(Seconds(std::abs(difference_s))),
      difference_s >= 0 ? "ahead" : "behind", HumanDuration(Seconds(uncertainty_s)));
  if (std::abs(difference_s) - uncertainty_s < kClockDifference) return Ok("clock", text);
  return Warn("clock", text, "no deadline depends on it, but times in logs and events differ: run NTP");
}

std::vector<Check> CheckNetwork(const NetworkTarget& target, const Clock& clock) {
  std::vector<Check> checks;
  if (IsBeforeStart(target)) {
    checks = ChecksBeforeStart(target);
  } else {
    AdminChecks admin = CheckAdminPort(target, clock);
    checks = {CheckDataPort(target, admin.answers, clock)};
    for (Check& check : admin.checks) checks.push_back(std::move(check));
  }
  checks.push_back(Certificates(target, clock));
  return checks;
}

}  // namespace atl
