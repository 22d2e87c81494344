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
/// The schedule counts inner steps, minus a set-back: a worker that is repeatedly late, only because the
/// others push later, falls into step with them. A single late push does not count. If all workers followed
/// one delayed push, the cycle would stay longer forever, and links that lose packets delay some push in
/// every cycle. Pure state; time is the number of inner steps. Not thread-safe.
class FragmentSchedule {
 public:
  /// fragments >= 1, delay < steps.
  FragmentSchedule(uint32_t steps, uint32_t fragments, uint32_t delay);

  /// Sets H from the next push of fragment 0 on; at least delay + 1, and at least one step per fragment.
  void SetSteps(uint32_t steps);

  void StepTaken() { ++now_; }
  /// Inner steps taken.
  uint64_t now() const { return now_; }

  /// Whether to push the fragment now, or as soon as its last push is answered. Call Pushed or Skipped next,
  /// or ask again after the next step.
  bool Due(uint32_t fragment) const { return cycle() >= fragments_[fragment].due; }
  /// Whether the fragment has been due for half a cycle: skip it if its last push is still unanswered.
  bool TooLate(uint32_t fragment) const { return cycle() >= fragments_[fragment].due + steps_ / 2; }
  void Pushed(uint32_t fragment);
  /// The fragment is not pushed this time; it is due again H steps after it was due.
  void Skipped(uint32_t fragment);

  /// Whether D steps have passed since its push; true if it was never pushed.
  bool Usable(uint32_t fragment) const;
  /// The fragment's answer is applied now; the others delayed it by `waited` inner steps. Returns the steps
  /// since its push. Sets the cycle back by the minimum of min(waited, steps late) over the last kInARow
  /// answers.
  uint64_t Used(uint32_t fragment, uint64_t waited);
  /// The contribution was too late. Workers that were in time applied the head `age` inner steps ago and push
  /// D steps before it is H steps old.
  void CameLate(uint32_t fragment, uint64_t age);

  uint32_t steps() const { return steps_; }
  /// Inner steps until the fragment is due; negative if overdue.
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
