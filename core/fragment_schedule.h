#ifndef ATOLL_CORE_FRAGMENT_SCHEDULE_H_
#define ATOLL_CORE_FRAGMENT_SCHEDULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atl {

/// When one worker pushes its fragments, and uses the answers (Streaming DiLoCo, arXiv 2501.18512; torchft's
/// semantics; docs/reference/streaming.md). With P fragments, H inner steps a cycle and D steps of delay,
/// fragment p is due at (p+1)H/P - D, rounded down (H later when that is below 1), and every H steps from
/// there on.
///
/// The count that this goes by, the cycle's, is that of the inner steps, but for what it is set back: who is
/// late time after time, and only because the others push later, falls into step with them. Once is no
/// reason: if everybody followed one push that a link held back, the cycle would be that much longer for
/// good, and links that lose packets hold some push back in every cycle. Pure state, time is the number of
/// inner steps; not thread-safe.
class FragmentSchedule {
 public:
  /// fragments >= 1, delay < steps.
  FragmentSchedule(uint32_t steps, uint32_t fragments, uint32_t delay);

  /// H from the next push of fragment 0 on; held above the delay, and at one step a fragment at least.
  void SetSteps(uint32_t steps);

  void StepTaken() { ++now_; }
  /// Inner steps taken.
  uint64_t now() const { return now_; }

  /// To be pushed now, or as soon as its last push is answered: followed by Pushed or Skipped, or asked again
  /// after the next step.
  bool Due(uint32_t fragment) const { return cycle() >= fragments_[fragment].due; }
  /// Due for half a cycle: if its last push is still unanswered it is passed over.
  bool TooLate(uint32_t fragment) const { return cycle() >= fragments_[fragment].due + steps_ / 2; }
  void Pushed(uint32_t fragment);
  /// It is not pushed this time but H steps after it was due.
  void Skipped(uint32_t fragment);

  /// D steps have passed since its push; true when it was never pushed.
  bool Usable(uint32_t fragment) const;
  /// Its answer is used now, the others having kept it waiting for `waited` inner steps. Returns the steps
  /// since its push. The cycle is set back by the least of min(waited, steps that it is late) of the last
  /// kInARow answers.
  uint64_t Used(uint32_t fragment, uint64_t waited);
  /// Its contribution came too late: those who were in time used the head `age` inner steps ago, and push D
  /// steps before it is H steps old.
  void CameLate(uint32_t fragment, uint64_t age);

  uint32_t steps() const { return steps_; }
  /// Inner steps until the fragment is due; what is below 0 is overdue.
  int64_t DueIn(uint32_t fragment) const { return fragments_[fragment].due - cycle(); }

 private:
  static constexpr size_t kInARow = 4;

  struct Fragment {
    int64_t due = 0;          // in cycle steps
    int64_t pushed = 0;       // likewise, as it was due
    uint64_t pushed_at = 0;   // in inner steps
    int64_t set_back_at = 0;  // set_back_ at the push
    bool unanswered = false;
  };
  int64_t cycle() const { return static_cast<int64_t>(now_) - set_back_; }
  uint32_t Held(uint32_t steps) const;

  const uint32_t delay_;
  std::vector<Fragment> fragments_;
  uint32_t steps_;
  uint32_t next_steps_;
  uint64_t now_ = 0;
  int64_t set_back_ = 0;
  std::array<int64_t, kInARow> late_{};  // of the last answers, in turn
  size_t answers_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_FRAGMENT_SCHEDULE_H_
