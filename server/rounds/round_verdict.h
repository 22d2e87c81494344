#ifndef ATOLL_SERVER_ROUNDS_ROUND_VERDICT_H_
#define ATOLL_SERVER_ROUNDS_ROUND_VERDICT_H_

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/ids.h"
#include "core/round_policy.h"

namespace atl {

/// What was decided last of an open round, and of what it was made. Pure state, not thread-safe.
class RoundVerdict {
 public:
  /// A round opened: nothing holds of it yet. The decision stays, for the status, until the next one.
  void Opened(MonoTime now) {
    since_ = now;
    awaits_storage_ = false;
    closing_view_ = RoundView{};
  }
  /// The policy decided this of `view`.
  void Decided(RoundDecision decision, const RoundView& view, MonoTime now) {
    if (decision.action != decision_.action) since_ = now;
    awaits_storage_ = false;
    if (decision.action == RoundDecision::Action::kClose) closing_view_ = view;
    decision_ = std::move(decision);
  }
  /// An operator decided it.
  void Ordered(RoundDecision decision) { decision_ = std::move(decision); }
  /// The round could close, but the tensors of its base are still being written. Until the next decision.
  void AwaitStorage(Version base) {
    awaits_storage_ = true;
    decision_.reason =
        absl::StrFormat("ready to close (%s); waiting for the tensors of version %d to be written to disk",
                        decision_.reason, base.value());
  }

  const RoundDecision& decision() const { return decision_; }
  /// Since when decisions have been of this kind.
  MonoTime since() const { return since_; }
  bool awaits_storage() const { return awaits_storage_; }
  /// The round as it was when the policy decided to close it; empty when an operator did.
  const RoundView& closing_view() const { return closing_view_; }

 private:
  RoundDecision decision_;
  MonoTime since_;
  RoundView closing_view_;
  bool awaits_storage_ = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_ROUND_VERDICT_H_
