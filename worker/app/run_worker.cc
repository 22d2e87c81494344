#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/metrics/worker_metrics.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/setup/drain_on_signal.h"
#include "client/setup/ready_file.h"
#include "client/sync/identity.h"
#include "client/sync/worker.h"
#include "common/bind_address.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/exit_codes.h"
#include "common/file.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "common/sleeper.h"
#include "common/status.h"
#include "core/confirmation.h"
#include "core/membership.h"
#include "monitoring/certificate_metrics.h"
#include "monitoring/endpoint.h"
#include "monitoring/metrics.h"
#include "monitoring/program_metrics.h"
#include "worker/app/commands.h"
#include "worker/data/dataset.h"
#include "worker/torch/hardware.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

// Every token that a file can hold: before the coordinator has said what the model is, any vocabulary will
// do.
constexpr uint32_t kAnyVocabulary = 65536;

// Long enough for a coordinator that is started beside its workers, by hand or by a script.
constexpr Duration kGiveUpAfter = Seconds(60);

DeviceDescription DescriptionOfDevice(const std::string& device, int threads) {
  const Hardware hardware = HardwareOf(device);
  return {.device = device,
          .device_name = hardware.name,
          .threads = static_cast<uint32_t>(threads > 0 ? threads : hardware.default_threads),
          .memory_bytes = hardware.memory_bytes,
          .device_memory_bytes = hardware.device_memory_bytes};
}

absl::StatusOr<std::unique_ptr<Replica>> BuildReplica(const WorkerFlags& flags, const JoinedRun& info,
                                                      const Clock* clock) {
  TorchReplicaOptions options;
  options.run = info.run;
  options.device = flags.device;
  options.threads = flags.threads;
  options.dataset_folder = flags.data;
  options.clock = clock;
  if (info.data.has_value()) {
    options.partition = info.data->partition;
    options.partitions = info.data->partitions;
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<TorchReplica> replica, CreateTorchReplica(options));
  return std::unique_ptr<Replica>(std::move(replica));
}

/// What the worker says of its files. They are checked against the model when it is built, once the
/// coordinator has said what the model is.
absl::StatusOr<DatasetSummary> SummaryOfData(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(
      const Dataset dataset,
      Dataset::Open(folder, {.vocabulary = kAnyVocabulary, .context = 0, .tokenizer = {}}));
  return DatasetSummary{.tokenizer = dataset.description().tokenizer,
                        .vocabulary = dataset.description().vocabulary,
                        .train_tokens = dataset.train_tokens(),
                        .fingerprint = dataset.fingerprint()};
}

/// What the worker says of itself when it joins.
JoinCall Introduction(const WorkerFlags& flags, const WorkerIdentity& identity, DatasetSummary data) {
  JoinCall join;
  join.worker = identity.name;
  join.secret = identity.secret;
  join.role = flags.role == "evaluator" ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
  join.device = DescriptionOfDevice(flags.device, flags.threads);
  join.expected_run = flags.expect_run;
  join.dataset = std::move(data);
  return join;
}

WorkerOutcome Fail(const Logger& log, const absl::Status& status, ExitCode code) {
  log.Error(std::string(status.message()));
  return {.code = code};
}

/// The worker's parts, in the order in which they may go.
struct Parts {
  SystemClock clock;
  std::shared_ptr<ChannelSecurity> security;
  MetricsRegistry registry;
  std::unique_ptr<WorkerMetrics> metrics;
  std::unique_ptr<CertificateMetrics> certificates;  // null without TLS
  std::unique_ptr<MetricsEndpoint> endpoint;
  InterruptibleSleeper sleeper;
};

absl::Status StartMetrics(const WorkerFlags& flags, const Logger& log, Parts& parts) {
  AddProgramMetrics(&parts.registry, "atoll-worker");
  const auto certificates = parts.security->certificates();
  if (certificates != nullptr && !certificates->certificate.empty()) {
    parts.certificates = std::make_unique<CertificateMetrics>(&parts.registry);
    parts.registry.BeforeScrape([&parts] {
      parts.certificates->Set(parts.security->certificates()->facts.not_after,
                              parts.security->files_outcome().ok());
    });
  }
  parts.metrics = std::make_unique<WorkerMetrics>(&parts.registry);
  if (flags.metrics_listen.empty()) return absl::OkStatus();
  auto endpoint = MetricsEndpoint::Start(flags.metrics_listen, parts.registry);
  if (!endpoint.ok()) return NameOption(endpoint.status(), "--metrics-listen", flags.metrics_listen);
  parts.endpoint = *std::move(endpoint);
  log.Info("metrics", {{"url", "http://" + parts.endpoint->address().ToString() + "/metrics"}});
  return absl::OkStatus();
}

WorkerOutcome Live(const WorkerFlags& flags, WorkerOptions options, const Logger& log, Shutdown& shutdown) {
  Parts parts;
  const absl::Status ready_file = ReadyFile::Check(flags.ready_file);
  if (!ready_file.ok()) return Fail(log, ready_file, ExitCode::kUsage);
  auto security = ChannelSecurity::Create(flags.security, &parts.clock, log);
  if (!security.ok()) return Fail(log, security.status(), LocalExitCode(security.status()));
  parts.security = *std::move(security);
  const absl::Status target = parts.security->CheckTarget(flags.coordinator);
  if (!target.ok()) return Fail(log, target, ExitCode::kUsage);
  const absl::Status started = StartMetrics(flags, log, parts);
  if (!started.ok()) return Fail(log, started, DefaultExitCode(started));
  // Heartbeats have a connection of their own, which a large transfer cannot starve.
  const ChannelOptions channel{.address = flags.coordinator, .security = parts.security};
  const GrpcConnectionOptions connection{
      .address = flags.coordinator, .device = options.join.device, .security = parts.security};
  GrpcConnectionOptions for_data = connection;
  while (for_data.range_channels.size() + 1 < flags.pull_streams) {
    for_data.range_channels.push_back(MakeChannel(channel));
  }
  GrpcConnection data(std::move(for_data), MakeChannel(channel), &parts.clock);
  GrpcConnection control(connection, MakeChannel(channel), &parts.clock);
  ReadyFile ready(flags.ready_file, parts.metrics.get(), log);
  Worker worker(std::move(options), {.data = &data,
                                     .control = &control,
                                     .clock = &parts.clock,
                                     .sleeper = &parts.sleeper,
                                     .observer = &ready,
                                     .log = log,
                                     .make_replica = [&](const JoinedRun& info) {
                                       return BuildReplica(flags, info, &parts.clock);
                                     }});
  parts.registry.BeforeScrape(
      [&parts, &worker] { parts.metrics->SetTimes(worker.training_time(), worker.exchange_time()); });
  DrainOnSignal drain(&worker, &parts.sleeper, Seconds(flags.drain_seconds), log);
  drain.Listen(shutdown);
  const WorkerEnd end = worker.Run();
  parts.registry.StopRefreshing();
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
  const absl::Status address = CheckAddress(flags.coordinator);
  if (!address.ok()) return Fail(log, address, ExitCode::kUsage);
  // Before anything is written: a wrong name or folder leaves no state directory behind.
  if (!flags.name.empty()) {
    const absl::Status name = ValidateWorkerName(flags.name);
    if (!name.ok()) return Fail(log, name, ExitCode::kUsage);
  }
  auto data = SummaryOfData(flags.data);
  if (!data.ok()) return Fail(log, data.status(), ExitCode::kBadFiles);
  const auto device = ResolveDevice(flags.device);
  if (!device.ok()) return Fail(log, device.status(), ExitCode::kUsage);
  const auto state = StateDirectory::Open(flags.state_dir);
  if (!state.ok()) return Fail(log, state.status(), ExitCode::kStorage);
  const auto identity = state->LoadOrCreate(flags.name);
  if (!identity.ok()) {
    const bool other_name = absl::IsFailedPrecondition(identity.status());
    return Fail(log, identity.status(), other_name ? ExitCode::kUsage : ExitCode::kStorage);
  }
  WorkerFlags resolved = flags;
  resolved.device = *device;
  const auto key = state->LoadOrCreateKey();
  if (!key.ok()) return Fail(log, key.status(), ExitCode::kStorage);
  WorkerOptions options;
  options.join = Introduction(resolved, *identity, *std::move(data));
  options.join.public_key = key->public_key();
  options.key = *key;
  options.peers.any_difference = flags.stop_on_any_difference;
  if (!flags.peer_keys.empty()) {
    const auto pinned = ReadPeerKeys(flags.peer_keys);
    if (!pinned.ok()) return Fail(log, pinned.status(), LocalExitCode(pinned.status()));
    options.peers.pinned = *pinned;
  }
  log.Info("signs the parameters it trains on", {{"public_key", ToHex(key->public_key())}});
  options.state_folder = JoinPath(state->path(), "progress");
  options.backoff_seed = RandomNonZero64();
  if (!flags.wait_forever) options.retry_policy.give_up_after = kGiveUpAfter;
  return Live(resolved, std::move(options), log.With("worker", identity->name), **shutdown);
}

}  // namespace atl
