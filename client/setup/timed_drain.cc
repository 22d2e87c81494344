#include "client/setup/timed_drain.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/exit_codes.h"
#include "common/human.h"

namespace atl {
namespace {

/// What is left for the goodbye when the grace is over.
constexpr Duration kLastGoodbye = Seconds(1);

}  // namespace

void StuckWorker::EndProcess() {
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(ExitCode::kUncounted));
}

TimedDrain::TimedDrain(Worker* worker, InterruptibleSleeper* sleeper, Duration grace, const Logger& log,
                       StuckWorker stuck)
    : sleeper_(sleeper), grace_(grace), log_(log), stuck_(std::move(stuck)), worker_(worker) {}

TimedDrain::~TimedDrain() { Detach(); }

void TimedDrain::Stop(std::string_view why) {
  const MutexLock lock(&mutex_);
  if (worker_ == nullptr) return;
  worker_->RequestStop(kLastGoodbye, why);
  sleeper_->Interrupt();
}

TimedDrain::Begun TimedDrain::Begin() {
  const MutexLock lock(&mutex_);
  if (worker_ == nullptr || begun_) return Begun::kNothing;
  begun_ = true;
  if (worker_->RequestDrain()) return Begun::kPush;
  sleeper_->Interrupt();
  return Begun::kStop;
}

void TimedDrain::Drain() {
  if (grace_ <= Duration(0)) {
    ran_out_ = true;
    Stop();
    static_cast<void>(timer_.Post([this] { AwaitEnd(); }));
    return;
  }
  const Begun begun = Begin();
  if (begun == Begun::kNothing) return;
  const bool pushes = begun == Begun::kPush;
  if (pushes)
    log_.Info("asked to leave; pushing what is done of the round", {{"for_at_most", HumanDuration(grace_)}});
  static_cast<void>(timer_.Post([this, pushes] {
    if (!waiting_.SleepFor(grace_)) return;
    if (pushes) ran_out_ = true;
    log_.Warning(pushes ? "no time left to push; leaving" : "no time left to say goodbye; leaving");
    Stop();
    AwaitEnd();
  }));
}

void TimedDrain::AwaitEnd() {
  if (!stuck_.end || !waiting_.SleepFor(stuck_.after)) return;
  log_.Error("the worker was told to stop and its inner step does not end, so the process ends without it",
             {{"after", HumanDuration(stuck_.after)}});
  stuck_.end();
}

void TimedDrain::Detach() {
  {
    const MutexLock lock(&mutex_);
    worker_ = nullptr;
  }
  waiting_.Interrupt();
  timer_.Stop();
}

}  // namespace atl
