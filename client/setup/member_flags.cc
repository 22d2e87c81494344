#include "client/setup/member_flags.h"

#include "client/rpc/channel.h"
#include "client/setup/setup_error.h"
#include "common/status.h"
#include "core/membership.h"
#include "protos/transport/security_flags.h"

namespace atl {

void AddMemberFlags(CLI::App& app, MemberFlags& flags) {
  app.add_option("--coordinator", flags.coordinator, "Address of the coordinator's data port")
      ->capture_default_str()
      ->envname("ATOLL_COORDINATOR");
  app.add_flag(
      "--wait-forever", flags.wait_forever,
      "Keep trying even when the failure looks permanent: an unknown host name, another CA, TLS on one "
      "side only, the port of another program. Default: exit after a minute");
  app.add_option("--name", flags.name,
                 "Name in the run (a-z 0-9 . -); default: made once from the host name");
  app.add_option("--state-dir", flags.state_dir,
                 "Folder of the worker's identity and state, one per worker; REQUIRED");
  app.add_option("--role", flags.role, "Role in the run")
      ->capture_default_str()
      ->check(CLI::IsMember({"trainer", "evaluator"}));
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "Serve Prometheus metrics on http://ADDRESS/metrics; default: none");
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "After SIGTERM: seconds to push the steps done so far; 0: leave without pushing")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option(
         "--pull-streams", flags.pull_streams,
         "Number of parallel connections per pull. Raise it on links where a single connection cannot use "
         "the full bandwidth")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  app.add_option(
      "--ready-file", flags.ready_file,
      "Keep this empty file while the worker is a member and reaches the coordinator; for readiness checks");
  app.add_option(
      "--peer-keys", flags.peer_keys,
      "File of other workers' public keys, a name and 64 hexadecimal digits a line. Only these workers count "
      "when parameters are compared; without it the coordinator says whose key is whose");
  app.add_flag(
      "--stop-on-any-difference", flags.stop_on_any_difference,
      "Stop when any worker signed other parameters. Default: when at least as many differ as agree, twice");
  app.add_option("--expect-run", flags.expect_run, "Join only the run with this name or id");
  AddClientSecurityFlags(app, flags.security);
}

absl::Status CheckMemberFlags(const MemberFlags& flags) {
  ATOLL_RETURN_IF_ERROR(WithExitCode(CheckAddress(flags.coordinator), ExitCode::kUsage));
  if (flags.name.empty()) return absl::OkStatus();
  return WithExitCode(ValidateWorkerName(flags.name), ExitCode::kUsage);
}

void AddLogFlags(CLI::App& app, LogFlags& flags) {
  app.add_option("--log-format", flags.format, "Log format; json writes one object per line")
      ->capture_default_str()
      ->check(CLI::IsMember({"human", "json"}));
  app.add_option("--log-level", flags.level, "Lowest level that is logged")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
}

absl::StatusOr<Logger> MakeLogger(const LogFlags& flags) {
  LogOptions options;
  options.level = ParseLogLevel(flags.level).value_or(LogLevel::kInfo);
  options.format = flags.format == "json" ? LogFormat::kJson : LogFormat::kText;
  options.file = flags.file;
  return Logger::Create(options);
}

}  // namespace atl
