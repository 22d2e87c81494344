#include <memory>
#include <string>
#include <utility>

#include "client/setup/setup_error.h"
#include "client/setup/worker_home.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "common/status.h"
#include "worker/app/commands.h"
#include "worker/app/eval/task_suite.h"
#include "worker/app/worker_start.h"
#include "worker/torch/cuda_driver.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

absl::StatusOr<std::unique_ptr<Replica>> BuildReplica(const WorkerFlags& flags, const JoinedRun& info,
                                                      TaskSuite& tasks, const Clock* clock,
                                                      const Logger& log) {
  TorchReplicaOptions options;
  options.run = info.run;
  options.device = flags.device;
  options.threads = flags.threads;
  options.dataset_folder = flags.data;
  options.clock = clock;
  options.log = log;
  options.graph_steps = flags.cuda_graph;
  options.encode_on_cpu = flags.encode_on_cpu;
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

WorkerOutcome Fail(const Logger& log, const absl::Status& status, ExitCode code) {
  log.Error(std::string(status.message()));
  return {.code = code};
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
  if (flags.cuda_graph && *device == "cpu") {
    return Fail(
        log,
        absl::InvalidArgumentError("--cuda-graph records work of a GPU, and this worker computes on the "
                                   "processor: leave it out, or give --device cuda"),
        ExitCode::kUsage);
  }
  if (const std::string why = WhyGpuIsIdle(); flags.device == "auto" && !why.empty())
    log.Warning("trains on the processor, although this machine has a GPU", {{"why", why}});
  auto home = OpenWorkerHome(flags.member, log);
  if (!home.ok()) return Fail(log, home.status(), SetupExitCode(home.status()));
  WorkerFlags resolved = flags;
  resolved.device = *device;
  home->options.join.device = DescribeDevice(resolved.device, flags.threads, 1);
  home->options.join.dataset = data->summary;
  const WorkerName name = home->options.join.worker;
  DeviceNotice device_notice(home->options.join.device, log);
  const SystemClock clock{};
  const auto build = [&](const JoinedRun& info) {
    device_notice.Say(info.run);
    return BuildReplica(resolved, info, **tasks, &clock, log);
  };
  return LiveAsMember(resolved, *std::move(home), data->texts, build, log.With("worker", name), **shutdown);
}

}  // namespace atl
