// atoll-timed-worker: the real worker on the real protocol, but for its replica, whose inner step is a timer.
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "bench/wan/journal.h"
#include "bench/wan/timed_replica.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/sync/identity.h"
#include "client/sync/worker.h"
#include "common/digest.h"
#include "common/exit_codes.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sleeper.h"
#include "common/status.h"
#include "protos/transport/security_flags.h"

namespace atl {
namespace {

struct Flags {
  std::string coordinator = "127.0.0.1:7600";
  std::string name;
  std::string state_dir;
  std::string journal;
  ClientSecurityFlags security;
  double step_ms = 100;
  uint64_t seed = 1;
  uint32_t pull_streams = 1;
};

absl::StatusOr<WorkerOptions> Introduce(const Flags& flags) {
  ATOLL_ASSIGN_OR_RETURN(const StateDirectory state, StateDirectory::Open(flags.state_dir));
  ATOLL_ASSIGN_OR_RETURN(const WorkerIdentity identity, state.LoadOrCreate(flags.name));
  ATOLL_ASSIGN_OR_RETURN(const SigningKey key, state.LoadOrCreateKey());
  WorkerOptions options;
  options.join.worker = identity.name;
  options.join.secret = identity.secret;
  options.join.public_key = key.public_key();
  options.join.device = {.device = "timer", .device_name = "none", .threads = 0};
  options.key = key;
  options.state_folder = JoinPath(state.path(), "progress");
  options.backoff_seed = RandomNonZero64();
  return options;
}

WorkerEnd Live(const Flags& flags, WorkerOptions options, std::FILE* journal_file, const Logger& log) {
  SystemClock clock;
  InterruptibleSleeper sleeper;
  Journal journal(&clock, journal_file);
  absl::StatusOr<std::shared_ptr<ChannelSecurity>> made =
      ChannelSecurity::Create(flags.security, &clock, log);
  if (!made.ok()) return {.code = ExitCode::kUsage, .status = made.status()};
  const std::shared_ptr<const ChannelSecurity> security = *std::move(made);
  const ChannelOptions channel{.address = flags.coordinator, .security = security};
  const GrpcConnectionOptions connection{.address = flags.coordinator, .security = security};
  GrpcConnectionOptions for_data = connection;
  while (for_data.range_channels.size() + 1 < flags.pull_streams) {
    for_data.range_channels.push_back(MakeChannel(channel));
  }
  GrpcConnection data(std::move(for_data), MakeChannel(channel), &clock);
  GrpcConnection control(connection, MakeChannel(channel), &clock);
  const auto build = [&flags](const JoinedRun& info) -> absl::StatusOr<std::unique_ptr<Replica>> {
    return std::make_unique<TimedReplica>(info.run, Seconds(flags.step_ms / 1000), flags.seed);
  };
  Worker worker(std::move(options), {.data = &data,
                                     .control = &control,
                                     .clock = &clock,
                                     .sleeper = &sleeper,
                                     .observer = &journal,
                                     .log = log,
                                     .make_replica = build});
  return worker.Run();
}

WorkerEnd Run(const Flags& flags, const Logger& log) {
  auto options = Introduce(flags);
  if (!options.ok()) return {.code = DefaultExitCode(options.status()), .status = options.status()};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> journal(std::fopen(flags.journal.c_str(), "w"),
                                                                std::fclose);
  if (journal == nullptr) {
    return {.code = ExitCode::kStorage,
            .status = absl::PermissionDeniedError(flags.journal + ": the journal cannot be written")};
  }
  return Live(flags, *std::move(options), journal.get(), log.With("worker", flags.name));
}

int Main(int argc, char** argv) {
  CLI::App app("atoll-timed-worker: a worker whose inner step is a timer; bench/wan/wan.py runs it.");
  Flags flags;
  app.add_option("--coordinator", flags.coordinator, "The coordinator's data port")->capture_default_str();
  app.add_option("--name", flags.name, "Name in the run")->required();
  app.add_option("--state-dir", flags.state_dir, "As atoll-worker's")->required();
  app.add_option("--journal", flags.journal, "What happens, as JSON lines, goes to this file")->required();
  app.add_option("--step-ms", flags.step_ms, "Duration of an inner step")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3.6e6));
  app.add_option("--seed", flags.seed, "Of what the steps do to the parameters")->capture_default_str();
  app.add_option("--pull-streams", flags.pull_streams, "As atoll-worker's")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  AddClientSecurityFlags(app, flags.security);
  CLI11_PARSE(app, argc, argv);
  const auto log = Logger::Create({});
  if (!log.ok()) return ToInt(DefaultExitCode(log.status()));
  const WorkerEnd end = Run(flags, *log);
  if (!end.status.ok()) log->Error(std::string(end.status.message()));
  return ToInt(end.code);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
