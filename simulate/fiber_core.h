#ifndef ATOLL_SIMULATE_FIBER_CORE_H_
#define ATOLL_SIMULATE_FIBER_CORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/random.h"
#include "simulate/fiber.h"
#include "simulate/fiber_scheduler.h"

namespace atl {

/// Which fibers there are, what each waits for, and which one runs next.
class FiberScheduler::Core {
 public:
  using TaskId = uint64_t;

  explicit Core(const Options& options);
  ~Core();

  absl::Status Run(std::function<void()> main);
  MonoTime now() const { return now_; }
  uint64_t switches() const { return switches_; }

  /// The scheduler whose fiber calls; null when the caller is no fiber.
  static Core* Current();

  // All of these are for the fiber that runs.

  TaskId Start(std::function<void()> run);
  void Join(TaskId id);
  /// Gives way until `on` is woken (true) or `deadline` has come (false). `what` is told when it never ends, and
  /// outlives the wait.
  bool Await(const void* on, const char* what, std::optional<MonoTime> deadline);
  /// Fibers that wait for `on` can run again: one of them, or all. Does not give way.
  void WakeOne(const void* on);
  void WakeAll(const void* on);
  /// Gives way to a fiber that can run, which may be the same one.
  void Yield();
  /// Sometimes.
  void MayYield();
  TaskId running() const { return running_->id; }
  void SetName(const std::string& name) { running_->name = name; }
  const void*& trace_slot() { return running_->trace; }

 private:
  struct Task {
    TaskId id;
    std::string name;
    std::unique_ptr<Fiber> fiber;
    const void* trace = nullptr;
    const void* awaits = nullptr;  // null: it can run
    const char* what = "";
    bool timed_out = false;
  };

  /// The next one to run; null when none ever can.
  Task* Next();
  /// Lets time go on to the earliest deadline. False when there is none.
  bool Expire();
  void MakeReady(Task* task);
  void RunOne(Task* task);
  void End(Task* task);
  absl::Status Stuck() const;
  void Abandon();
  FiberStack TakeStack();

  const Options options_;
  SplitMixGenerator random_;
  MonoTime now_;
  uint64_t switches_ = 0;
  uint64_t switches_now_ = 0;  // since virtual time last went on
  TaskId next_id_ = 1;
  std::map<TaskId, std::unique_ptr<Task>> tasks_;
  std::vector<Task*> ready_;
  absl::flat_hash_map<const void*, std::vector<Task*>> waiting_;  // by what they wait for, in the order in which they came
  std::multimap<MonoTime, Task*> timers_;  // a task that is woken takes its own away before time goes on
  std::vector<FiberStack> stacks_;  // of fibers that have ended
  Task* running_ = nullptr;
};

}  // namespace atl

#endif  // ATOLL_SIMULATE_FIBER_CORE_H_
