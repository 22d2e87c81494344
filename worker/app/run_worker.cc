#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/setup/setup_error.h"
#include "client/setup/worker_home.h"
#include "client/setup/worker_process.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "common/status.h"
#include "core/data_passes.h"
#include "core/token_width.h"
#include "worker/app/commands.h"
#include "worker/app/eval/task_suite.h"
#include "worker/data/training_data.h"
#include "worker/torch/hardware.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

// Every token that a file can hold: before the coordinator has said what the model is, any vocabulary will
// do.
constexpr uint32_t kAnyVocabulary = kMaxVocabulary;

DeviceDescription DescriptionOfDevice(const std::string& device, int threads) {
  const Hardware hardware = HardwareOf(device);
  return {.device = device,
          .device_name = hardware.name,
          .threads = static_cast<uint32_t>(threads > 0 ? threads : hardware.default_threads),
          .memory_bytes = hardware.memory_bytes,
          .device_memory_bytes = hardware.device_memory_bytes};
}

absl::StatusOr<std::unique_ptr<Replica>> BuildReplica(const WorkerFlags& flags, const JoinedRun& info,
                                                      TaskSuite& tasks, const Clock* clock) {
  TorchReplicaOptions options;
  options.run = info.run;
  options.device = flags.device;
  options.threads = flags.threads;
  options.dataset_folder = flags.data;
  options.clock = clock;
  tasks.CompareWith(info.run);
  options.score_tasks = [&tasks, context = info.run.model.context()](TorchReplica& model,
                                                                     const TaskCall& call) {
    return tasks.Score(model, context, call);
  };
  if (info.data.has_value()) {
    options.partition = info.data->partition;
    options.partitions = info.data->partitions;
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<TorchReplica> replica, CreateTorchReplica(options));
  return std::unique_ptr<Replica>(std::move(replica));
}

/// What the worker says of its files. They are checked against the model when it is built, once the
/// coordinator has said what the model is.
struct DataFacts {
  DatasetSummary summary;
  std::vector<TextShare> texts;
};

absl::StatusOr<DataFacts> FactsOfData(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(
      const TrainingData data,
      TrainingData::Open(folder, {.vocabulary = kAnyVocabulary, .context = 0, .tokenizer = {}}));
  return DataFacts{.summary = {.tokenizer = data.tokenizer(),
                               .vocabulary = data.vocabulary(),
                               .train_tokens = data.train_tokens(),
                               .fingerprint = data.fingerprint()},
                   .texts = data.shares()};
}

WorkerOutcome Fail(const Logger& log, const absl::Status& status, ExitCode code) {
  log.Error(std::string(status.message()));
  return {.code = code};
}

WorkerOutcome Live(const WorkerFlags& flags, WorkerHome home, const std::vector<TextShare>& texts,
                   TaskSuite& tasks, const Logger& log, Shutdown& shutdown) {
  const SystemClock clock{};
  const auto& join = home.options.join;
  const bool trains = join.role == WorkerRole::kTrainer;
  const auto build = [&, trains](const JoinedRun& info) {
    const std::string passes = trains ? PassesWarning(info.run, texts) : "";
    if (!passes.empty()) log.Warning(passes);
    return BuildReplica(flags, info, tasks, &clock);
  };
  auto process = WorkerProcess::Create({.program = "atoll-worker",
                                        .flags = flags.member,
                                        .worker = std::move(home.options),
                                        .state = &home.state,
                                        .make_replica = build,
                                        .stuck = {.end = StuckWorker::EndProcess},
                                        .log = log},
                                       &clock);
  if (!process.ok()) return Fail(log, process.status(), SetupExitCode(process.status()));
  shutdown.OnRequest([drain = (*process)->drain()] { drain->Drain(); });
  const WorkerEnd end = (*process)->Run();
  if (!end.status.ok()) return Fail(log, end.status, end.code);
  if (end.restart && !shutdown.requested()) {
    log.Info("restarting");
    return {.code = ExitCode::kOk, .restart = true};
  }
  log.Info(end.reached ? "done" : "stopped before it reached a coordinator");
  return {.code = end.code};
}

}  // namespace

WorkerOutcome RunWorker(const WorkerFlags& flags, const Logger& log) {
  auto shutdown = Shutdown::Install();
  if (!shutdown.ok()) return Fail(log, shutdown.status(), ExitCode::kInternal);
  RaiseFileLimit();  // each token file stays open, and there may be thousands
  // Before anything is written: a wrong name or folder leaves no state directory behind.
  const absl::Status checked = CheckMemberFlags(flags.member);
  if (!checked.ok()) return Fail(log, checked, SetupExitCode(checked));
  auto data = FactsOfData(flags.data);
  if (!data.ok()) return Fail(log, data.status(), ExitCode::kBadFiles);
  auto tasks = TaskSuite::Create(flags.tasks, data->summary.tokenizer, log);
  if (!tasks.ok()) return Fail(log, tasks.status(), ExitCode::kBadFiles);
  const auto device = ResolveDevice(flags.device);
  if (!device.ok()) return Fail(log, device.status(), ExitCode::kUsage);
  auto home = OpenWorkerHome(flags.member, log);
  if (!home.ok()) return Fail(log, home.status(), SetupExitCode(home.status()));
  WorkerFlags resolved = flags;
  resolved.device = *device;
  home->options.join.device = DescriptionOfDevice(resolved.device, flags.threads);
  home->options.join.dataset = std::move(data->summary);
  const WorkerName name = home->options.join.worker;
  return Live(resolved, *std::move(home), data->texts, **tasks, log.With("worker", name), **shutdown);
}

}  // namespace atl
