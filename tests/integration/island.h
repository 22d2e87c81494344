#ifndef ATOLL_TESTS_INTEGRATION_ISLAND_H_
#define ATOLL_TESTS_INTEGRATION_ISLAND_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/sync/worker.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "server/create_coordinator.h"
#include "server/rpc/server.h"
#include "storage/memory_store.h"
#include "tests/client/sync/fake_replica.h"

// A coordinator and workers of one process that talk over real sockets.

namespace atl {

/// Silent, unless ATOLL_TEST_LOG is set.
inline Logger TestLog() {
  return std::getenv("ATOLL_TEST_LOG") == nullptr ? Logger() : Logger::Create({}).value();
}

/// A coordinator in memory, listening on a free port.
class Island {
 public:
  explicit Island(const std::string& yaml) {
    const auto config = ParseRunConfig(yaml, "test");
    EXPECT_TRUE(config.ok()) << config.status();
    CoordinatorOptions options;
    options.run = ToRunOptions(*config).value();
    options.config_bytes = config->SerializeAsString();
    CoordinatorDeps deps;
    deps.store = OpenMemoryStore(NewMemoryDisk()).value();
    deps.clock = &clock_;
    deps.log = TestLog();
    auto coordinator = CreateCoordinator(std::move(options), std::move(deps));
    EXPECT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    RpcServerOptions rpc;
    rpc.data_address = "127.0.0.1:0";
    rpc.admin_address = "127.0.0.1:0";
    auto server = RpcServer::Start(rpc, coordinator_.get(), &clock_, TestLog());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Island() {
    coordinator_->Shutdown();
    server_->Shutdown();
  }

  const std::string& address() const { return server_->data_address(); }
  Coordinator& coordinator() { return *coordinator_; }
  const Clock* clock() const { return &clock_; }

 private:
  SystemClock clock_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<RpcServer> server_;
};

/// One worker process, as a thread.
class WorkerThread {
 public:
  /// `prepare` is given the replica when it is made.
  WorkerThread(const Island& island, const std::string& name, float target, Duration step = Duration(0),
               const std::function<void(FakeReplica&)>& prepare = nullptr)
      : data_({.address = island.address()}, MakeChannel({.address = island.address()}), island.clock()),
        control_({.address = island.address()}, MakeChannel({.address = island.address()}), island.clock()),
        worker_(Options(name),
                {.data = &data_,
                 .control = &control_,
                 .clock = island.clock(),
                 .sleeper = &sleeper_,
                 .observer = &observer_,
                 .log = TestLog(),
                 .make_replica = [this, target, step,
                                  prepare](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                   auto replica = std::make_unique<FakeReplica>(target);
                   replica->on_step = [step](uint64_t) {
                     if (step > Duration(0)) std::this_thread::sleep_for(step);
                     return absl::OkStatus();
                   };
                   if (prepare) prepare(*replica);
                   replica_ = replica.get();
                   return replica;
                 }}),
        thread_([this] { end_ = worker_.Run(); }) {}
  ~WorkerThread() {
    if (thread_.joinable()) Join();
  }

  WorkerEnd Join() {
    thread_.join();
    return end_;
  }
  void Stop() {
    worker_.RequestStop();
    sleeper_.Interrupt();
  }
  /// After Join.
  const FakeReplica& replica() const { return *replica_; }
  const WorkerStatus& worker_status() const { return worker_.worker_status(); }

 private:
  static WorkerOptions Options(const std::string& name) {
    WorkerOptions options;
    options.join = {.worker = name, .secret = std::string(32, name.back())};
    options.join.dataset = DatasetSummary{"bytes", 256, 100000, std::string(64, 'a')};
    return options;
  }

  GrpcConnection data_;
  GrpcConnection control_;
  InterruptibleSleeper sleeper_;
  WorkerObserver observer_;
  FakeReplica* replica_ = nullptr;
  WorkerEnd end_;
  Worker worker_;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_ISLAND_H_
