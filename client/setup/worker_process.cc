#include "client/setup/worker_process.h"

#include <utility>

#include "client/rpc/channel.h"
#include "client/setup/setup_error.h"

namespace atl {

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Create(WorkerProcessOptions options,
                                                                     const Clock* clock) {
  const MemberFlags& flags = options.flags;
  const absl::Status ready_file = ReadyFile::Check(flags.ready_file);
  if (!ready_file.ok()) return WithExitCode(ready_file, ExitCode::kUsage);
  auto security = ChannelSecurity::Create(flags.security, clock, options.log);
  if (!security.ok()) return WithExitCode(security.status(), LocalExitCode(security.status()));
  const absl::Status target = (*security)->CheckTarget(flags.coordinator);
  if (!target.ok()) return WithExitCode(target, ExitCode::kUsage);
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(clock));
  process->security_ = *std::move(security);
  auto monitoring = WorkerMonitoring::Start(
      {.program = options.program, .listen = flags.metrics_listen, .security = process->security_},
      options.log);
  if (!monitoring.ok()) return WithExitCode(monitoring.status(), DefaultExitCode(monitoring.status()));
  process->monitoring_ = *std::move(monitoring);
  process->Connect(flags, options.worker.join.device);
  process->claim_ =
      std::make_unique<IdentityClaim>(options.state, process->monitoring_->observer(), options.log);
  process->ready_ = std::make_unique<ReadyFile>(flags.ready_file, process->claim_.get(), options.log);
  process->totals_ = std::make_unique<WorkerTotals>(process->ready_.get());
  process->worker_ = std::make_unique<Worker>(std::move(options.worker),
                                              WorkerDeps{.data = process->data_.get(),
                                                         .control = process->control_.get(),
                                                         .clock = clock,
                                                         .sleeper = &process->sleeper_,
                                                         .observer = process->totals_.get(),
                                                         .log = options.log,
                                                         .make_replica = std::move(options.make_replica)});
  process->monitoring_->Watch(process->worker_.get());
  process->drain_ = std::make_shared<TimedDrain>(process->worker_.get(), &process->sleeper_,
                                                 Seconds(flags.drain_seconds), options.log, options.stuck);
  return process;
}

void WorkerProcess::Connect(const MemberFlags& flags, const DeviceDescription& device) {
  // Heartbeats have a connection of their own, which a large transfer cannot starve.
  const ChannelOptions channel{.address = flags.coordinator, .security = security_};
  const GrpcConnectionOptions connection{
      .address = flags.coordinator, .device = device, .security = security_};
  GrpcConnectionOptions for_data = connection;
  while (for_data.range_channels.size() + 1 < flags.pull_streams) {
    for_data.range_channels.push_back(MakeChannel(channel));
  }
  data_ = std::make_unique<GrpcConnection>(std::move(for_data), MakeChannel(channel), clock_);
  control_ = std::make_unique<GrpcConnection>(connection, MakeChannel(channel), clock_);
}

WorkerProcess::~WorkerProcess() {
  if (drain_ != nullptr) drain_->Detach();
  if (monitoring_ != nullptr) monitoring_->StopWatching();
}

WorkerEnd WorkerProcess::Run() {
  WorkerEnd end = worker_->Run();
  monitoring_->StopWatching();
  return end;
}

}  // namespace atl
