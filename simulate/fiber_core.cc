#include "simulate/fiber_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace {

// So many switches without any time passing are fibers that wait for each other by looking again and again.
constexpr uint64_t kMostSwitchesAtOnce = uint64_t{1} << 24;

thread_local FiberScheduler::Core* current = nullptr;

}  // namespace

FiberScheduler::Core::Core(const Options& options)
    : options_(options), random_(options.seed), now_(MonoTime(options.start)) {}

FiberScheduler::Core::~Core() = default;

FiberScheduler::Core* FiberScheduler::Core::Current() { return current; }

absl::Status FiberScheduler::Core::Run(std::function<void()> main) {
  current = this;
  Start(std::move(main));
  absl::Status status;
  while (!tasks_.empty()) {
    Task* const task = Next();
    if (task == nullptr || ++switches_now_ > kMostSwitchesAtOnce) {
      status = Stuck();
      Abandon();
      tasks_.clear();
      break;
    }
    RunOne(task);
  }
  current = nullptr;
  return status;
}

// Fibers that can never run again are kept: other fibers, and what the test or the simulation made, refer to their stacks.
void FiberScheduler::Core::Abandon() {
  static auto* const abandoned = new std::vector<std::unique_ptr<Task>>();
  for (auto& [id, task] : tasks_) abandoned->push_back(std::move(task));
}

FiberScheduler::Core::Task* FiberScheduler::Core::Next() {
  while (ready_.empty()) {
    if (!Expire()) return nullptr;
  }
  const size_t index = ready_.size() == 1 ? 0 : random_.Below(ready_.size());
  Task* const task = ready_[index];
  ready_[index] = ready_.back();
  ready_.pop_back();
  return task;
}

bool FiberScheduler::Core::Expire() {
  if (timers_.empty()) return false;
  const MonoTime due = timers_.begin()->first;
  while (!timers_.empty() && timers_.begin()->first == due) {
    Task* const task = timers_.begin()->second;
    timers_.erase(timers_.begin());
    const auto waiters = waiting_.find(task->awaits);
    std::erase(waiters->second, task);
    if (waiters->second.empty()) waiting_.erase(waiters);
    task->timed_out = true;
    MakeReady(task);
  }
  if (due > now_) {
    now_ = due;
    switches_now_ = 0;
  }
  return true;
}

void FiberScheduler::Core::MakeReady(Task* task) {
  task->awaits = nullptr;
  ready_.push_back(task);
}

void FiberScheduler::Core::RunOne(Task* task) {
  ++switches_;
  running_ = task;
  task->fiber->Resume();
  running_ = nullptr;
  if (task->fiber->ended()) End(task);
}

void FiberScheduler::Core::End(Task* task) {
  WakeAll(task);
  stacks_.push_back(task->fiber->TakeStack());
  tasks_.erase(task->id);
}

absl::Status FiberScheduler::Core::Stuck() const {
  std::string waits;
  for (const auto& [id, task] : tasks_) {
    absl::StrAppend(&waits, waits.empty() ? "" : "; ", "thread ", id, task->name.empty() ? "" : " ",
                    task->name, task->awaits == nullptr ? " can run" : " waits for ",
                    task->awaits == nullptr ? "" : task->what);
  }
  const bool nobody_runs = ready_.empty() && timers_.empty();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s at %.6f s of virtual time: %s",
      nobody_runs ? "no thread can ever run again"
                  : absl::StrFormat("threads switched %d times while no time passed", kMostSwitchesAtOnce),
      ToSeconds(now_.time_since_epoch() - options_.start), waits));
}

FiberStack FiberScheduler::Core::TakeStack() {
  if (stacks_.empty()) return FiberStack(options_.stack_bytes);
  FiberStack stack = std::move(stacks_.back());
  stacks_.pop_back();
  return stack;
}

FiberScheduler::Core::TaskId FiberScheduler::Core::Start(std::function<void()> run) {
  const TaskId id = next_id_++;
  auto task = std::make_unique<Task>(Task{.id = id, .name = "", .fiber = nullptr});
  task->fiber = std::make_unique<Fiber>(TakeStack(), std::move(run));
  ready_.push_back(task.get());
  tasks_.emplace(id, std::move(task));
  return id;
}

void FiberScheduler::Core::Join(TaskId id) {
  const auto task = tasks_.find(id);
  if (task != tasks_.end()) Await(task->second.get(), "the end of a thread", std::nullopt);
}

bool FiberScheduler::Core::Await(const void* on, const char* what, std::optional<MonoTime> deadline) {
  Task* const task = running_;
  task->awaits = on;
  task->what = what;
  task->timed_out = false;
  waiting_[on].push_back(task);
  if (!deadline.has_value()) {
    task->fiber->GiveWay();
    return true;
  }
  const auto timer = timers_.emplace(std::max(*deadline, now_), task);
  task->fiber->GiveWay();
  if (!task->timed_out) timers_.erase(timer);
  return !task->timed_out;
}

void FiberScheduler::Core::WakeOne(const void* on) {
  const auto waiters = waiting_.find(on);
  if (waiters == waiting_.end()) return;
  std::vector<Task*>& tasks = waiters->second;
  const size_t index = tasks.size() == 1 ? 0 : random_.Below(tasks.size());
  MakeReady(tasks[index]);
  tasks.erase(tasks.begin() + static_cast<int64_t>(index));
  if (tasks.empty()) waiting_.erase(waiters);
}

void FiberScheduler::Core::WakeAll(const void* on) {
  const auto waiters = waiting_.find(on);
  if (waiters == waiting_.end()) return;
  for (Task* const task : waiters->second) MakeReady(task);
  waiting_.erase(waiters);
}

void FiberScheduler::Core::Yield() {
  ready_.push_back(running_);
  running_->fiber->GiveWay();
}

void FiberScheduler::Core::MayYield() {
  if (options_.locks_per_switch > 0 && random_.Below(options_.locks_per_switch) == 0) Yield();
}

}  // namespace atl
