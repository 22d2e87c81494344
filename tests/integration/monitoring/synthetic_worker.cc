// synthetic_worker COORDINATOR NAME PORT_FILE: a worker of our own classes over real gRPC, but for the model,
// which needs no LibTorch: it trains until the run is over or SIGTERM comes. Writes the address of its
// metrics to PORT_FILE.
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "client/metrics/worker_metrics.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/sync/worker.h"
#include "common/file.h"
#include "common/log.h"
#include "common/shutdown.h"
#include "common/signature.h"
#include "monitoring/endpoint.h"
#include "monitoring/program_metrics.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

constexpr auto kStep = std::chrono::milliseconds(40);

absl::StatusOr<std::unique_ptr<Replica>> MakeReplica(const JoinedRun&) {
  auto replica = std::make_unique<FakeReplica>(/*target=*/3.0F);
  replica->on_step = [](uint64_t) {
    std::this_thread::sleep_for(kStep);
    return absl::OkStatus();
  };
  return replica;
}

int Main(const std::string& coordinator, const std::string& name, const std::string& port_file) {
  LogOptions log_options;
  log_options.level = LogLevel::kDebug;
  log_options.format = LogFormat::kJson;
  const Logger log = Logger::Create(log_options).value();
  auto shutdown = Shutdown::Install().value();
  const SystemClock clock{};
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "synthetic_worker");
  WorkerMetrics metrics(&registry);
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", registry);
  if (!endpoint.ok() || !WriteFileAtomically(port_file, (*endpoint)->address().ToString()).ok()) return 1;
  GrpcConnection data({.address = coordinator}, MakeChannel({.address = coordinator}), &clock);
  GrpcConnection control({.address = coordinator}, MakeChannel({.address = coordinator}), &clock);
  InterruptibleSleeper sleeper;
  WorkerOptions options;
  options.join = {.worker = name, .secret = std::string(32, 's') + name};
  options.join.dataset = DatasetSummary{"bytes", 256, 100000, std::string(64, 'a')};
  options.key = SigningKey::Generate();
  options.join.public_key = options.key->public_key();
  Worker worker(std::move(options), {.data = &data,
                                     .control = &control,
                                     .clock = &clock,
                                     .sleeper = &sleeper,
                                     .observer = &metrics,
                                     .log = log,
                                     .make_replica = MakeReplica});
  std::thread listener([&] {
    shutdown->Wait();
    worker.RequestStop();
    sleeper.Interrupt();
  });
  const WorkerEnd end = worker.Run();
  shutdown->Wait();  // the last scrapes
  listener.join();
  return ToInt(end.code);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: synthetic_worker COORDINATOR NAME PORT_FILE\n", stderr), 2;
  return atl::Main(argv[1], argv[2], argv[3]);
}
