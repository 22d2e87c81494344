#include "simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "common/thread.h"
#include "core/pace.h"
#include "protos/config/run_config.h"
#include "server/admin/admin_control.h"
#include "simulate/coordinator_host.h"
#include "simulate/fiber_scheduler.h"
#include "simulate/memory_files.h"
#include "simulate/quadratic_replica.h"
#include "simulate/run_checker.h"
#include "simulate/worker_host.h"

namespace atl {
namespace {

/// Of a run with kFaultsForWorkers workers or more. Fewer workers get as many faults each: one worker that is hit
/// by all of them would never come to the end of a round.
constexpr double kMeanSecondsBetweenFaults = 15;
constexpr uint32_t kFaultsForWorkers = 8;
constexpr Duration kLook = Seconds(0.5);
constexpr int kLooksPerCheck = 8;  // of what rounds wait for
constexpr Duration kDeadline = Seconds(60);
constexpr Duration kLease = Seconds(20);
/// A tick, a message on its way, a commit.
constexpr Duration kMargin = Seconds(10);
/// One of so many runs has a budget that it reaches.
constexpr uint64_t kRunsPerShortOne = 4;
constexpr uint64_t kShortRounds = 60;
/// No round may take longer than this while faults come and go. A deadline, two leases and the longest
/// outage.
constexpr Duration kLongestStandstill = Seconds(600);
/// After the last fault, until every fragment has moved on.
constexpr Duration kComesToRest = Seconds(900);

constexpr char kCommon[] =
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: shared, partitions: 64}\n"
    "inner: {steps: 20, learning_rate: 0.1, min_learning_rate_ratio: 1, warmup_steps: 0, batch: 3}\n";
constexpr char kBlocking[] =
    "outer: {learning_rate: 0.7, momentum: 0.9}\n"
    "round: {deadline_s: 60, lease_s: 20}\n"
    "codec: {push: e3m0, pull_delta: int8}\n";
constexpr char kOverlapped[] =
    "outer: {learning_rate: 0.7, momentum: 0.8}\n"
    "sync: {mode: overlapped, fragments: 2, delay_steps: 4, answer: blend, alpha: 0.5}\n"
    "round: {deadline_s: 60, lease_s: 20}\n"
    "codec: {push: int8, pull_delta: int8}\n";
constexpr char kAsync[] =
    "outer: {optimizer: delayed_nesterov, learning_rate: 0.1, momentum: 0.5, delay: 4}\n"
    "round: {mode: async, staleness_limit: 16, deadline_s: 60, lease_s: 20}\n"
    "codec: {push: int4, pull_delta: none}\n";

const AdminCaller kOperator{.user = "simulation", .peer = "simulation"};

bool IsShort(const SimulationOptions& simulation) {
  return DeriveSeed(simulation.seed, 4) % kRunsPerShortOne == 0;
}

CoordinatorOptions OptionsOf(const SimulationOptions& simulation) {
  const char* const of_mode = simulation.mode == SimulatedMode::kBlocking     ? kBlocking
                              : simulation.mode == SimulatedMode::kOverlapped ? kOverlapped
                                                                              : kAsync;
  const auto config = ParseRunConfig(
      absl::StrCat("run: {name: simulation, workers: ", simulation.workers,
                   ", rounds: ", IsShort(simulation) ? kShortRounds : 100000, "}\n", kCommon, of_mode),
      "simulation");
  CoordinatorOptions options;
  options.run = ToRunOptions(config.value()).value();
  options.config_bytes = config->SerializeAsString();
  options.fragments = options.run.sync.fragments;
  options.tick = Seconds(0.5);
  options.merge_threads = 1;
  return options;
}

RunRules RulesOf(const RunOptions& run) {
  const bool varies = run.sync.mode == SyncMode::kOverlapped;
  return {.tokens_per_step = run.tokens_per_step(),
          .most_steps = varies ? MostPacedSteps(run.inner.steps) : run.inner.steps,
          .total_tokens = run.total_tokens()};
}

/// The coordinator, the workers, and what happens to them. Lives in one fiber.
class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        coordinator_options_(OptionsOf(options)),
        random_(DeriveSeed(options.seed, 2)),
        checker_(RulesOf(coordinator_options_.run),
                 SerialModel(coordinator_options_.run.merge.weights, coordinator_options_.run.pull_delta)),
        host_(coordinator_options_, &clock_, &checker_, DeriveSeed(options.seed, 3)) {}

  void Run(SimulationResult* result);

 private:
  /// The open round of a fragment since it has a contribution.
  struct Begun {
    Version base = {};
    MonoTime coordinator_began = {};  // a restart opens the round again
    MonoTime at = {};
  };
  struct Later {
    MonoTime at;
    std::function<void()> what;
  };

  absl::Status Begin();
  void Weather(Duration duration);
  void ComeToRest();
  void CheckEnd();
  void Tick();
  void CheckWaits();
  void CheckDeadline(const FragmentStatusView& round, MonoTime coordinator_began);
  void CheckWait(const FragmentStatusView& round, MonoTime coordinator_began);
  double MeanSecondsBetweenFaults() const {
    return kMeanSecondsBetweenFaults * kFaultsForWorkers / std::min(options_.workers, kFaultsForWorkers);
  }
  void Fault();
  void FaultOfWorker(WorkerHost& worker);
  void FaultOfCoordinator();
  void Command(const WorkerName& worker);
  void ChangeCodec();
  void StartCoordinator();
  void After(double least, double most, std::function<void()> what);
  void Count(const char* kind) { ++events_[kind]; }
  template <typename Call>
  void Admin(Call call);

  const SimulationOptions options_;
  const CoordinatorOptions coordinator_options_;
  /// A push under way, one that was given up, and a poisoned one, of each fragment of each worker, in fp32.
  const uint64_t most_in_flight_ =
      3 * sizeof(float) * QuadraticReplica::kElements * options_.workers * coordinator_options_.fragments;
  const SystemClock clock_;
  SplitMixGenerator random_;
  RunChecker checker_;
  CoordinatorHost host_;
  std::vector<std::unique_ptr<WorkerHost>> workers_;
  std::vector<Later> later_;
  std::map<FragmentId, Begun> begun_;
  bool coordinator_comes_ = false;  // a start is planned
  int looks_ = 0;
  std::map<std::string, uint64_t> events_;
};

absl::Status Simulation::Begin() {
  ClearMemoryFiles();
  ATOLL_RETURN_IF_ERROR(host_.CreateRun());
  ATOLL_RETURN_IF_ERROR(host_.Start());
  for (uint32_t i = 0; i < options_.workers; ++i) {
    const WorkerName name(absl::StrCat("w", i));
    workers_.push_back(std::make_unique<WorkerHost>(name, JoinPath("/", name), &host_, &clock_, &checker_,
                                                    DeriveSeed(options_.seed, 100 + i)));
    workers_.back()->step_time = Seconds(0.8 + 0.4 * random_.Uniform());
    workers_.back()->Start();
  }
  return absl::OkStatus();
}

void Simulation::Run(SimulationResult* result) {
  if (const absl::Status begun = Begin(); !begun.ok()) checker_.Fail(begun.ToString());
  if (checker_.status().ok()) Weather(options_.duration);
  if (checker_.status().ok()) ComeToRest();
  for (const auto& worker : workers_) worker->Kill();
  host_.Kill();
  for (const auto& worker : workers_) worker->Reap();
  host_.Reap();
  result->status = checker_.status();
  result->versions = checker_.committed();
  result->counted = checker_.counted();
  result->acknowledged = checker_.acknowledged();
  result->fingerprint = checker_.fingerprint();
  result->events = events_;
}

void Simulation::Weather(Duration duration) {
  const MonoTime end = clock_.Now() + duration;
  MonoTime fault = clock_.Now() + Seconds(30);
  while (clock_.Now() < end && checker_.status().ok()) {
    SleepThisThread(kLook);
    Tick();
    if (!checker_.budget_spent() && clock_.Now() - checker_.last_commit() > kLongestStandstill) {
      checker_.Fail(absl::StrCat("no version for ", ToSeconds(kLongestStandstill), " s"));
    }
    if (clock_.Now() < fault) continue;
    Fault();
    fault = clock_.Now() + Seconds(-MeanSecondsBetweenFaults() * std::log(1 - random_.Uniform()));
  }
}

void Simulation::ComeToRest() {
  const MonoTime end = clock_.Now() + kComesToRest;
  for (const auto& worker : workers_) {
    worker->link.partitioned = worker->frozen = false;
    worker->link.loss = worker->link.repeat = worker->link.lies = 0;
  }
  const uint64_t before = checker_.committed();
  const uint64_t wanted = before + 4 * coordinator_options_.fragments;
  const auto rests = [&] { return checker_.budget_spent() || checker_.committed() >= wanted; };
  while (clock_.Now() < end && checker_.status().ok() && !rests()) {
    SleepThisThread(kLook);
    Tick();
  }
  if (!rests()) checker_.Fail("the run makes no progress after the last fault");
  if (checker_.budget_spent()) CheckEnd();
}

void Simulation::After(double least, double most, std::function<void()> what) {
  later_.push_back({clock_.Now() + Seconds(least + (most - least) * random_.Uniform()), std::move(what)});
}

void Simulation::Tick() {
  for (size_t i = 0; i < later_.size();) {
    if (later_[i].at > clock_.Now()) {
      ++i;
      continue;
    }
    const std::function<void()> what = std::move(later_[i].what);
    later_.erase(later_.begin() + static_cast<int64_t>(i));
    what();
  }
  if (++looks_ % kLooksPerCheck == 0) CheckWaits();
  for (const auto& worker : workers_) {
    absl::Status how;
    if (!worker->TakeEnd(&how)) continue;
    if (!how.ok()) checker_.Fail(absl::StrCat(worker->name(), " ended: ", how.ToString()));
    Count("clean_ends");
    After(1, 60, [raw = worker.get()] { raw->Start(); });
  }
}

void Simulation::CheckWaits() {
  const CoordinatorHost::LifePtr life = host_.life();
  if (life == nullptr) return;
  if (life->budget.used > most_in_flight_) {
    checker_.Fail(absl::StrFormat("%d bytes of contributions are accounted as in flight; %d can be",
                                  life->budget.used, most_in_flight_));
  }
  for (const FragmentStatusView& round : life->coordinator->GetStatus(0).fragments) {
    CheckDeadline(round, life->began);
    CheckWait(round, life->began);
  }
}

void Simulation::CheckDeadline(const FragmentStatusView& round, MonoTime coordinator_began) {
  if (round.arrived.empty()) {
    begun_.erase(round.id);
    return;
  }
  // While nothing has arrived, a round whose workers have all gone begins again when one of them is back.
  Begun& begun = begun_[round.id];
  if (begun.base != round.version || begun.coordinator_began != coordinator_began)
    begun = {.base = round.version, .coordinator_began = coordinator_began, .at = clock_.Now()};
  const Duration open = clock_.Now() - begun.at;
  if (open <= kDeadline + kLease + kMargin) return;
  checker_.Fail(absl::StrFormat("the round of fragment %d has %d contributions, and is open for %.1f s since the first",
                                round.id.value(), round.arrived.size(), ToSeconds(open)));
}

void Simulation::CheckWait(const FragmentStatusView& round, MonoTime coordinator_began) {
  for (const WorkerName& missing : round.missing) {
    const auto worker = std::ranges::find(workers_, missing, [](const auto& host) { return host->name(); });
    if (worker == workers_.end()) continue;
    const Duration silent = clock_.Now() - std::max((*worker)->last_seen(), coordinator_began);
    if (silent <= kLease + kMargin) continue;
    checker_.Fail(absl::StrFormat("the round of fragment %d waits for %s, which is dead for %.1f s",
                                  round.id.value(), missing, ToSeconds(silent)));
  }
}

void Simulation::CheckEnd() {
  const MonoTime end = clock_.Now() + kComesToRest;
  const auto finished = [this] {
    const CoordinatorHost::LifePtr life = host_.life();
    return life != nullptr && life->coordinator->GetStatus(0).state == RunState::kFinished;
  };
  for (; clock_.Now() < end && checker_.status().ok(); SleepThisThread(kLook)) {
    if (finished()) return Count("finished_runs");
    Tick();
  }
  checker_.Fail("the budget is spent, and the run does not finish");
}

void Simulation::Fault() {
  const uint64_t roll = random_.Below(100);
  WorkerHost& worker = *workers_[random_.Below(workers_.size())];
  if (roll < 65) {
    FaultOfWorker(worker);
  } else if (roll < 85) {
    FaultOfCoordinator();
  } else if (roll < 95) {
    Command(worker.name());
  } else {
    ChangeCodec();
  }
}

void Simulation::FaultOfWorker(WorkerHost& worker) {
  switch (random_.Below(6)) {
    case 0:
      if (!worker.running()) return;
      if (random_.Below(2) == 0) {
        worker.CutPower(random_);
        Count("worker_power_cuts");
      } else {
        worker.Kill();
        Count("worker_kills");
      }
      After(1, 90, [&worker] { worker.Start(); });
      return;
    case 1:
      worker.Drain();
      Count("worker_stops");
      return;
    case 2:
      worker.link.partitioned = true;
      Count("partitions");
      After(5, 90, [&worker] { worker.link.partitioned = false; });
      return;
    case 3:
      worker.frozen = true;
      Count("freezes");
      After(5, 90, [&worker] { worker.frozen = false; });
      return;
    case 4:
      worker.step_time = Seconds(0.5 + 2 * random_.Uniform() * random_.Uniform());
      Count("speeds");
      return;
    default:
      worker.link.loss = 0.1 * random_.Uniform() * random_.Uniform();
      worker.link.repeat = 0.2 * random_.Uniform() * random_.Uniform();
      worker.link.lies = 0.2 * random_.Uniform() * random_.Uniform();
      worker.link.latency = Seconds(0.005 + 0.3 * random_.Uniform() * random_.Uniform());
      Count("links");
  }
}

void Simulation::FaultOfCoordinator() {
  if (host_.life() == nullptr || coordinator_comes_) return;
  switch (random_.Below(3)) {
    case 0:
      host_.Kill();
      Count("coordinator_kills");
      break;
    case 1:
      host_.CutPower();
      Count("power_cuts");
      break;
    default:
      host_.Stop();
      Count("coordinator_stops");
  }
  coordinator_comes_ = true;
  After(1, 40, [this] { StartCoordinator(); });
}

void Simulation::StartCoordinator() {
  coordinator_comes_ = false;
  if (const absl::Status started = host_.Start(); !started.ok()) {
    checker_.Fail(absl::StrCat("the coordinator does not start: ", started.ToString()));
  }
}

template <typename Call>
void Simulation::Admin(Call call) {
  const CoordinatorHost::LifePtr life = host_.life();
  if (life == nullptr) return;
  ++life->calls;
  call(life->coordinator->admin());
  --life->calls;
}

void Simulation::Command(const WorkerName& worker) {
  Admin([&](AdminControl& admin) {
    constexpr WorkerAction kActions[] = {WorkerAction::kDrain, WorkerAction::kRestart, WorkerAction::kResync};
    const WorkerAction action = kActions[random_.Below(std::size(kActions))];
    const auto done = admin.ControlWorker(
        kOperator, {.worker = worker, .action = action, .at_once = random_.Below(2) == 0, .reason = ""});
    if (done.ok()) Count("commands");
  });
}

void Simulation::ChangeCodec() {
  Admin([&](AdminControl& admin) {
    const std::string codecs[] = {"int8", "e3m0", "int4", "fp32"};
    const auto set =
        admin.SetConfig(kOperator, {{"codec.push", codecs[random_.Below(std::size(codecs))]}}, 0, false);
    if (set.ok()) Count("settings");
  });
}

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  SimulationResult result;
  FiberScheduler scheduler({.seed = DeriveSeed(options.seed, 1)});
  const absl::Status ran = scheduler.Run([&] {
    SetThreadName("simulation");
    Simulation(options).Run(&result);
  });
  if (!ran.ok() && result.status.ok()) result.status = ran;
  result.switches = scheduler.switches();
  return result;
}

}  // namespace atl
