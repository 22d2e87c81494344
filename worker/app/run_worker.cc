#include <memory>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "common/digest.h"
#include "common/shutdown.h"
#include "common/sleeper.h"
#include "common/status.h"
#include "monitoring/endpoint.h"
#include "monitoring/metrics.h"
#include "worker/app/commands.h"
#include "worker/client/channel.h"
#include "worker/client/grpc_connection.h"
#include "worker/data/dataset.h"
#include "worker/metrics/worker_metrics.h"
#include "worker/sync/identity.h"
#include "worker/sync/worker.h"
#include "worker/torch/torch_replica.h"

namespace atoll {
namespace {

// Every token that a file can hold: before the coordinator has said what the model is, any vocabulary will
// do.
constexpr uint32_t kAnyVocabulary = 65536;

absl::StatusOr<std::unique_ptr<Replica>> BuildReplica(const WorkerFlags& flags, const JoinInfo& info) {
  TorchReplicaOptions options;
  options.run = info.run;
  options.device = flags.device;
  options.threads = flags.threads;
  options.dataset_folder = flags.data;
  if (info.data.has_value()) {
    options.partition = info.data->partition;
    options.partitions = info.data->partitions;
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<TorchReplica> replica, CreateTorchReplica(options));
  return std::unique_ptr<Replica>(std::move(replica));
}

/// What the worker says of itself and of its files when it joins. The files are checked against the model
/// when it is built, once the coordinator has said what the model is.
absl::StatusOr<JoinParameters> Introduction(const WorkerFlags& flags, const Identity& identity) {
  ATOLL_ASSIGN_OR_RETURN(
      const Dataset dataset,
      Dataset::Open(flags.data, {.vocabulary = kAnyVocabulary, .context = 0, .tokenizer = {}}));
  JoinParameters join;
  join.worker = identity.name;
  join.secret = identity.secret;
  join.role = flags.role == "evaluator" ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
  join.device.device = flags.device;
  join.device.device_name = "LibTorch " + TorchVersion();
  join.device.threads = static_cast<uint32_t>(flags.threads);
  join.expected_run = flags.expect_run;
  join.dataset = DatasetFacts{.tokenizer = dataset.description().tokenizer,
                              .vocabulary = dataset.description().vocabulary,
                              .train_tokens = dataset.train_tokens(),
                              .fingerprint = dataset.fingerprint()};
  return join;
}

ExitCode Fail(const Logger& log, const absl::Status& status, ExitCode code) {
  log.Error(std::string(status.message()));
  return code;
}

ExitCode Live(const WorkerFlags& flags, JoinParameters join, const Logger& log, Shutdown& shutdown) {
  const SystemClock clock;
  MetricsRegistry registry;
  AddBuildInfo(&registry, "atoll-worker");
  WorkerMetrics metrics(&registry);
  std::unique_ptr<MetricsEndpoint> endpoint;
  if (!flags.metrics_listen.empty()) {
    auto started = MetricsEndpoint::Start(flags.metrics_listen, registry);
    if (!started.ok()) return Fail(log, started.status(), DefaultExitCode(started.status()));
    endpoint = *std::move(started);
    log.Info("metrics", {{"url", "http://" + endpoint->address().ToString() + "/metrics"}});
  }
  // Heartbeats have a connection of their own, which a large transfer cannot starve.
  GrpcConnection data({.address = flags.coordinator}, MakeChannel({.address = flags.coordinator}), &clock);
  GrpcConnection control({.address = flags.coordinator}, MakeChannel({.address = flags.coordinator}), &clock);
  InterruptibleSleeper sleeper;
  WorkerOptions options;
  options.join = std::move(join);
  options.backoff_seed = RandomNonZero64();
  Worker worker(std::move(options),
                {.data = &data,
                 .control = &control,
                 .clock = &clock,
                 .sleeper = &sleeper,
                 .observer = &metrics,
                 .log = log,
                 .make_replica = [&flags](const JoinInfo& info) { return BuildReplica(flags, info); }});
  shutdown.OnRequest([&] {
    worker.RequestStop();
    sleeper.Interrupt();
  });
  const WorkerEnd end = worker.Run();
  if (!end.status.ok()) return Fail(log, end.status, end.code);
  log.Info("done");
  return end.code;
}

}  // namespace

ExitCode RunWorker(const WorkerFlags& flags, const Logger& log) {
  auto shutdown = Shutdown::Install();
  if (!shutdown.ok()) return Fail(log, shutdown.status(), ExitCode::kInternal);
  const absl::Status address = CheckAddress(flags.coordinator);
  if (!address.ok()) return Fail(log, address, ExitCode::kUsage);
  const auto state = StateDirectory::Open(flags.state_dir);
  if (!state.ok()) return Fail(log, state.status(), ExitCode::kStorage);
  const auto identity = state->LoadOrCreate(flags.name);
  if (!identity.ok()) {
    return Fail(log, identity.status(),
                absl::IsDataLoss(identity.status()) ? ExitCode::kStorage : ExitCode::kUsage);
  }
  auto join = Introduction(flags, *identity);
  if (!join.ok()) return Fail(log, join.status(), ExitCode::kBadFiles);
  return Live(flags, *std::move(join), log.With("worker", identity->name), **shutdown);
}

}  // namespace atoll
