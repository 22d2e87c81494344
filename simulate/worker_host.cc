#include "simulate/worker_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/random.h"
#include "common/sleeper.h"
#include "simulate/memory_files.h"
#include "simulate/quadratic_replica.h"
#include "simulate/simulated_connection.h"
#include "client/sync/worker.h"

namespace atl {
namespace {

constexpr Duration kFrozenLook = Seconds(1);

JoinCall JoinAs(const WorkerName& name) {
  JoinCall parameters{.worker = name, .secret = std::string(32, name.back())};
  parameters.dataset = DatasetSummary{
      .tokenizer = "bytes", .vocabulary = 256, .train_tokens = 10000000, .fingerprint = std::string(64, 'a')};
  return parameters;
}

}  // namespace

/// One process.
struct WorkerHost::Life {
  Life(CoordinatorHost* host, SimulatedLink* link, RunChecker* checker)
      : data(host, link, checker), control(host, link, checker) {}

  std::string folder;
  SimulatedConnection data;
  SimulatedConnection control;
  InterruptibleSleeper sleeper;
  WorkerObserver observer;
  std::unique_ptr<Worker> worker;
  bool killed = false;
  bool ended = false;
  WorkerEnd end;
  Thread thread;
};

WorkerHost::WorkerHost(const WorkerName& name, const std::string& folder, CoordinatorHost* host,
                       const Clock* clock, RunChecker* checker, uint64_t seed)
    : link(DeriveSeed(seed, 1)),
      name_(name),
      folder_(folder),
      host_(host),
      clock_(clock),
      checker_(checker),
      seed_(seed) {}

WorkerHost::~WorkerHost() {
  Kill();
  Reap();
}

void WorkerHost::Start() {
  const std::string folder = JoinPath(folder_, absl::StrCat(++lives_));
  const std::string before = JoinPath(folder_, "kept");
  if (FileExists(before)) RenameFile(before, folder).IgnoreError();
  life_ = std::make_shared<Life>(host_, &link, checker_);
  life_->folder = folder;
  WorkerOptions options{
      .join = JoinAs(name_), .state_folder = folder, .backoff_seed = DeriveSeed(seed_, lives_)};
  WorkerDeps deps{.data = &life_->data,
                  .control = &life_->control,
                  .clock = clock_,
                  .sleeper = &life_->sleeper,
                  .observer = &life_->observer,
                  .log = Logger(),
                  .make_replica = nullptr};
  // The replica belongs to the worker, which belongs to the life.
  deps.make_replica = [this,
                       life = life_.get()](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
    return std::make_unique<QuadraticReplica>([this, life] {
      SleepThisThread(step_time);
      while (frozen && !life->killed) SleepThisThread(kFrozenLook);
      return life->killed ? absl::UnauthenticatedError("this worker was killed") : absl::OkStatus();
    });
  };
  life_->worker = std::make_unique<Worker>(std::move(options), std::move(deps));
  life_->thread = Thread([life = life_] {
    SetThreadName("worker");
    life->end = life->worker->Run();
    life->worker.reset();  // its files are written in the background until then
    life->ended = true;
  });
}

void WorkerHost::Kill() {
  End([] { return false; });
}

void WorkerHost::CutPower(SplitMixGenerator& random) {
  End([&random] { return random.Below(2) == 0; });
}

void WorkerHost::End(const std::function<bool()>& is_lost) {
  if (life_ == nullptr) return;
  const std::shared_ptr<Life> life = std::exchange(life_, nullptr);
  last_seen_ = SteadyNow();
  // What it writes from here on, nobody reads.
  const std::string kept = JoinPath(folder_, "kept");
  CopyMemoryFolder(life->folder, kept);
  LoseUnsyncedFiles(kept, is_lost);
  life->killed = true;
  life->data.Kill();
  life->control.Kill();
  if (life->worker != nullptr) life->worker->RequestStop();
  life->sleeper.Interrupt();
  reapers_.emplace_back([life] {
    life->thread.Join();
    RemoveAll(life->folder).IgnoreError();
  });
}

void WorkerHost::Drain() {
  if (life_ == nullptr || life_->worker == nullptr) return;
  if (!life_->worker->RequestDrain()) life_->sleeper.Interrupt();
}

bool WorkerHost::TakeEnd(absl::Status* how) {
  if (life_ == nullptr || !life_->ended) return false;
  const std::shared_ptr<Life> life = std::exchange(life_, nullptr);
  last_seen_ = SteadyNow();
  life->thread.Join();
  *how = life->end.code == ExitCode::kUncounted ? absl::OkStatus() : life->end.status;
  if (FileExists(life->folder)) RenameFile(life->folder, JoinPath(folder_, "kept")).IgnoreError();
  return true;
}

void WorkerHost::Reap() {
  for (Thread& reaper : reapers_) reaper.Join();
  reapers_.clear();
}

}  // namespace atl
