#ifndef ATOLL_SERVER_RUN_ROUNDS_H_
#define ATOLL_SERVER_RUN_ROUNDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/contribution.h"
#include "core/offences.h"
#include "core/round_policy.h"
#include "server/run/member_actions.h"
#include "server/run/run_control.h"
#include "server/run/run_core.h"
#include "server/run/run_progress.h"

namespace atl {

/// Rounds: when they close, and what a commit changes. Thread-safe.
class Rounds {
 public:
  struct Parts {
    RunCore& core;
    const RunControl& control;
    RunProgress& progress;
    MemberActions& member_actions;
  };
  /// The parts outlive it.
  explicit Rounds(const Parts& parts)
      : core_(parts.core),
        control_(parts.control),
        progress_(parts.progress),
        member_actions_(parts.member_actions) {}

  /// What the policy says of the fragment's round; while it is closing, what it said last. Never kClose while
  /// the run is not seeded or finished.
  RoundDecision Decide(FragmentId fragment, MonoTime now, Effects& effects);
  /// The round could close, but the tensors of its base are still being written: says so until the next
  /// Decide.
  void AwaitStorage(FragmentId fragment);
  /// See FragmentRound.
  std::optional<ClosedRound> BeginClose(FragmentId fragment, MonoTime now);
  void Exclude(FragmentId fragment, const Contribution& contribution, const std::string& why,
               Effects& effects);
  /// The fragment's committed tokens after a round of these contributions.
  uint64_t TokensAfter(FragmentId fragment, const std::vector<Contribution>& contributions) const;
  std::vector<PartitionEntry> PartitionsAfter(FragmentId fragment,
                                              const std::vector<Contribution>& contributions) const;
  /// How the contributions of the round that is closing lay to their merge, and who was refused meanwhile.
  std::vector<ContributionAudit> Audit(FragmentId fragment, const std::vector<Contribution>& contributions,
                                       const MergeFindings& findings) const;
  /// The record is on disk: moves the head and opens the next round, unless the run is finished. Returns the
  /// fragments that will have no further version.
  std::vector<FragmentId> Committed(const RoundRecord& record, MonoTime now, Effects& effects);
  /// The tensors of this version are on disk.
  void Stored(FragmentId fragment, Version version);

  /// Under the lock. What the policy goes by.
  RoundOptions Rules(const FragmentRound& fragment, const RoundView& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

 private:
  void NoteOffences(const RoundRecord& record, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_.mutex);

  RunCore& core_;
  const RunControl& control_;
  RunProgress& progress_;
  MemberActions& member_actions_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_ROUNDS_H_
