#include "worker/app/worker_start.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/setup/setup_error.h"
#include "client/setup/worker_process.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/status.h"
#include "core/token_width.h"
#include "worker/data/training_data.h"
#include "worker/torch/hardware.h"

namespace atl {
namespace {

// Every token that a file can hold: before the coordinator has said what the model is, any vocabulary will
// do.
constexpr uint32_t kAnyVocabulary = kMaxVocabulary;

}  // namespace

DeviceDescription DescribeDevice(const std::string& device, int threads, uint32_t ranks) {
  const Hardware hardware = HardwareOf(device);
  return {.device = device,
          .device_name = hardware.name,
          .threads = static_cast<uint32_t>(threads > 0 ? threads : hardware.default_threads),
          .memory_bytes = hardware.memory_bytes,
          .device_memory_bytes = hardware.device_memory_bytes,
          .ranks = ranks};
}

void DeviceNotice::Say(const RunOptions& run) {
  if (std::exchange(said_, true)) return;
  // Without the driver's word, a GPU has no other name.
  const std::string name = device_.device_name == device_.device ? "" : " " + device_.device_name;
  log_.Info(absl::StrCat("computes on ", device_.device, name),
            {{"threads", device_.threads},
             {"precision", run.inner.precision == Precision::kBf16 ? "bf16" : "fp32"},
             {"ranks", device_.ranks}});
}

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

WorkerOutcome LiveAsMember(const WorkerFlags& flags, WorkerHome home, const std::vector<TextShare>& texts,
                           const ReplicaFactory& make_replica, const Logger& log, Shutdown& shutdown) {
  const auto fail = [&](const absl::Status& status, ExitCode code) {
    log.Error(std::string(status.message()));
    return WorkerOutcome{.code = code};
  };
  const SystemClock clock{};
  const auto& join = home.options.join;
  const bool trains = join.role == WorkerRole::kTrainer;
  const auto build = [&, trains](const JoinedRun& info) {
    const std::string passes = trains ? PassesWarning(info.run, texts) : "";
    if (!passes.empty()) log.Warning(passes);
    return make_replica(info);
  };
  auto process = WorkerProcess::Create({.program = "atoll-worker",
                                        .flags = flags.member,
                                        .worker = std::move(home.options),
                                        .state = &home.state,
                                        .make_replica = build,
                                        .stuck = {.end = StuckWorker::EndProcess},
                                        .log = log},
                                       &clock);
  if (!process.ok()) return fail(process.status(), SetupExitCode(process.status()));
  shutdown.OnRequest([drain = (*process)->drain()] { drain->Drain(); });
  const WorkerEnd end = (*process)->Run();
  if (!end.status.ok()) return fail(end.status, end.code);
  if (end.restart && !shutdown.requested()) {
    log.Info("restarting");
    return {.code = ExitCode::kOk, .restart = true};
  }
  log.Info(end.reached ? "done" : "stopped before it reached a coordinator");
  return {.code = end.code};
}

}  // namespace atl
