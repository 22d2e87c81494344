#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/commands/commands.h"
#include "cli/commands/config_file.h"
#include "cli/doctor/disk.h"
#include "cli/doctor/host.h"
#include "cli/doctor/network.h"
#include "cli/doctor/run_directory.h"
#include "cli/doctor/tokens.h"
#include "cli/exit_code.h"
#include "cli/plan.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

struct DoctorOptions {
  std::string config;
  std::string data;
  std::string dir;
};

/// The configuration and its needs. `run` and `plan` are empty if the configuration is invalid; `check` has
/// the reason.
struct ConfigFindings {
  Check check;
  std::optional<RunOptions> run;
  std::optional<RunPlan> plan;
};

/// What to do if the configuration does not say how large the model is.
std::string UnknownSize(const RunOptions& run) {
  return absl::StrFormat("set %s.parameters to the model's number of parameters to compare memory and disk",
                         ShapeOf(run.model)->section());
}

/// The model is external, and no TorchScript file that atoll-worker trains.
bool TrainsInOwnLoop(const RunOptions& run) {
  const ExternalOptions* const external = run.model.external();
  return external != nullptr && external->script.empty();
}

absl::Status Plan(const std::string& file, ConfigFindings& findings) {
  ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadConfigFile(file));
  ATOLL_ASSIGN_OR_RETURN(findings.run, ToRunOptions(config));
  if (!findings.run->model.size_known()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(findings.plan, MakePlan(*findings.run, {}));
  return absl::OkStatus();
}

ConfigFindings CheckConfig(const std::string& file) {
  ConfigFindings findings;
  const absl::Status status = Plan(file, findings);
  if (!status.ok()) {
    findings.check = Fail("configuration", std::string(status.message()),
                          "correct it; 'atollctl config explain' lists the fields");
  } else if (findings.plan) {
    findings.check =
        Ok("configuration", absl::StrFormat("%s is valid; 'atollctl plan' shows what it needs", file));
  } else {
    findings.check =
        Ok("configuration", absl::StrFormat("%s is valid; the size of its model is not known", file));
    findings.check.advice = UnknownSize(*findings.run);
  }
  return findings;
}

HostNeed HostNeedOf(const ConfigFindings& config) {
  HostNeed need;
  need.own_loop = config.run && TrainsInOwnLoop(*config.run);
  if (!config.plan) return need;
  need.coordinator_bytes = config.plan->coordinator.peak();
  if (config.plan->worker) need.worker_bytes = config.plan->worker->total();
  return need;
}

std::optional<DiskNeed> DiskNeedOf(const ConfigFindings& config) {
  if (!config.run) return std::nullopt;
  if (!config.plan) return DiskNeed{.remedy = UnknownSize(*config.run)};
  const PlannedDisk& planned = config.plan->disk;
  return DiskNeed{.bytes = planned.peak(),
                  .checkpoint_bytes = planned.checkpoint_bytes * (planned.checkpoints + planned.replaced),
                  .remedy = planned.remedy()};
}

std::vector<Check> CheckData(const std::string& folder, const ConfigFindings& config) {
  if (!config.run) return CheckTokens(folder, std::nullopt);
  if (TrainsInOwnLoop(*config.run)) return CheckDataOfOwnLoop(folder);
  return CheckTokens(folder, ConfiguredTokens{.tokenizer = config.run->data.tokenizer,
                                              .vocabulary = config.run->model.vocabulary(),
                                              .section = ShapeOf(config.run->model)->section()});
}

/// As a word of a POSIX shell.
std::string ShellWord(const std::string& text) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:[]@%+=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

/// Empty without CONFIG and --dir: then this need not be the coordinator's machine.
std::string StartCommand(const GlobalOptions& global, const DoctorOptions& options) {
  if (options.config.empty() && options.dir.empty()) return "";
  const auto word = [](const std::string& text, const char* otherwise) {
    return text.empty() ? std::string(otherwise) : ShellWord(text);
  };
  std::string command = absl::StrFormat("atoll-coordinator --config %s --data-dir %s",
                                        word(options.config, "CONFIG"), word(options.dir, "DIR"));
  if (global.coordinator.given())
    absl::StrAppend(&command, " --listen ", ShellWord(global.coordinator.address));
  if (global.admin.given()) absl::StrAppend(&command, " --admin-listen ", ShellWord(global.admin.address));
  return command;
}

/// --coordinator without --admin says that this is a worker's machine: ATOLL_ADMIN may be exported for
/// everything on it. --dir says that it is the coordinator's.
bool ChecksOnlyDataPort(const GlobalOptions& global, const DoctorOptions& options) {
  return options.dir.empty() && global.coordinator.given() && global.admin.source < global.coordinator.source;
}

NetworkTarget TargetOf(const GlobalOptions& global, const DoctorOptions& options,
                       const ConfigFindings& config, const SecurityPtr& security) {
  const bool only_data = ChecksOnlyDataPort(global, options);
  return {
      .coordinator = global.coordinator.address,
      .admin = global.admin.address,
      .coordinator_given = global.coordinator.given(),
      .admin_given = global.admin.on_command_line() || (global.admin.given() && !global.coordinator.given()),
      .starts_here = !options.dir.empty(),
      .checks_admin = !only_data,
      .start_command = StartCommand(global, options),
      .run = config.run ? config.run->name : "",
      .deadline = Seconds(std::min(global.timeout_s, 3.0)),
      .security = security,
      .notice = WaitNoticeFor(global)};
}

absl::Status Doctor(const GlobalOptions& global, const DoctorOptions& options) {
  if (!ChecksOnlyDataPort(global, options)) {
    ATOLL_RETURN_IF_ERROR(CheckBothPorts("doctor", global.admin, global.coordinator));
  }
  const SystemClock clock{};
  std::vector<Check> checks;
  const auto append = [&](std::vector<Check> more) {
    for (Check& check : more) checks.push_back(std::move(check));
  };
  ConfigFindings config;
  if (!options.config.empty()) {
    config = CheckConfig(options.config);
    append({config.check});
  }
  append(CheckHost(HostNeedOf(config)));
  ATOLL_ASSIGN_OR_RETURN(const SecurityPtr security, global.security());
  const NetworkTarget target = TargetOf(global, options, config, security);
  append(CheckNetwork(target, clock));
  if (!options.dir.empty()) {
    append({CheckRunDirectory(options.dir, target.run)});
    const auto folder = UsableFolder(options.dir);
    if (folder.ok()) append(CheckDisk(options.dir, *folder, DiskNeedOf(config), clock));
  }
  append(CheckData(options.data, config));
  if (global.json) {
    std::printf("%s\n", ChecksToJson(checks).c_str());
  } else {
    PrintLines(RenderChecks(checks));
  }
  const size_t failed = CountVerdict(checks, Verdict::kFail);
  if (failed == 0) return absl::OkStatus();
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrFormat("%d of %d checks failed", failed, checks.size())),
      ExitCode::kInternal);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Check this machine, its disk and network, and the coordinator; exit with 1 when a check fails");
  auto options = std::make_shared<DoctorOptions>();
  doctor->add_option("CONFIG", options->config,
                     "Configuration file of the run (YAML); its needs are compared with this machine");
  doctor->add_option("--data", options->data, "Folder of token files to check")->check(NotEmpty());
  doctor
      ->add_option("--dir", options->dir,
                   "Data directory of the coordinator, existing or planned: whose run it holds, and its disk")
      ->check(NotEmpty());
  doctor->callback(
      [&global, &action, options] { action = [&global, options] { return Doctor(global, *options); }; });
  SetHelp(*doctor,
          {.examples =
               {{"atollctl doctor run.yaml --dir ./run1 --data ./tokens", "Before a run"},
                {"atollctl doctor --admin coordinator.example:7601 --coordinator coordinator.example:7600",
                 "Check whether it is reachable"}},
           .exit_codes = {ExitCode::kInternal}});
}

}  // namespace atl
