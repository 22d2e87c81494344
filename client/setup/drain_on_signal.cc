#include "client/setup/drain_on_signal.h"

#include "common/human.h"
#include "common/mutex.h"
#include "common/task_queue.h"

namespace atl {
namespace {

/// What is left for the goodbye when the grace is over.
constexpr Duration kLastGoodbye = Seconds(1);

}  // namespace

struct DrainOnSignal::State {
  State(Worker* the_worker, InterruptibleSleeper* the_sleeper, Duration the_grace, const Logger& the_log)
      : sleeper(the_sleeper), grace(the_grace), log(the_log), worker(the_worker) {}

  void Signalled() ABSL_LOCKS_EXCLUDED(mutex);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex);
  /// False: there is nothing to push, and the worker stops.
  bool Drain() ABSL_LOCKS_EXCLUDED(mutex);

  InterruptibleSleeper* const sleeper;
  const Duration grace;
  const Logger log;
  InterruptibleSleeper waiting;  // for the grace to pass
  Mutex mutex;
  Worker* worker ABSL_GUARDED_BY(mutex);  // null once it is gone
  TaskQueue timer{"drain"};               // last: its thread uses everything above
};

void DrainOnSignal::State::Stop() {
  const MutexLock lock(&mutex);
  if (worker == nullptr) return;
  worker->RequestStop(kLastGoodbye);
  sleeper->Interrupt();
}

bool DrainOnSignal::State::Drain() {
  const MutexLock lock(&mutex);
  if (worker == nullptr) return false;
  if (worker->RequestDrain()) return true;
  sleeper->Interrupt();
  return false;
}

void DrainOnSignal::State::Signalled() {
  if (grace <= Duration(0)) return Stop();
  const bool pushes = Drain();
  if (pushes)
    log.Info("asked to leave; pushing what is done of the round", {{"for_at_most", HumanDuration(grace)}});
  static_cast<void>(timer.Post([this, pushes] {
    if (!waiting.SleepFor(grace)) return;
    log.Warning(pushes ? "no time left to push; leaving" : "no time left to say goodbye; leaving");
    Stop();
  }));
}

DrainOnSignal::DrainOnSignal(Worker* worker, InterruptibleSleeper* sleeper, Duration grace, const Logger& log)
    : state_(std::make_shared<State>(worker, sleeper, grace, log)) {}

DrainOnSignal::~DrainOnSignal() {
  {
    const MutexLock lock(&state_->mutex);
    state_->worker = nullptr;
  }
  state_->waiting.Interrupt();
  state_->timer.Stop();
}

void DrainOnSignal::Listen(Shutdown& shutdown) {
  shutdown.OnRequest([state = state_] { state->Signalled(); });
}

}  // namespace atl
