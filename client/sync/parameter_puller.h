#ifndef ATOLL_CLIENT_SYNC_PARAMETER_PULLER_H_
#define ATOLL_CLIENT_SYNC_PARAMETER_PULLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/context.h"
#include "client/sync/published_values.h"
#include "client/sync/replica.h"
#include "client/sync/session.h"
#include "core/fragment_plan.h"

namespace atl {

/// What the fragment's next contribution is measured from: the exact published values.
struct FragmentBase {
  FragmentLayout layout;
  std::optional<Version> version;  // none: nothing was pulled yet
  std::vector<float> values;       // layout.elements, as published
  RoundPlan plan = {};             // what to do with this version
  ContentHash served = {};         // of this version, as the coordinator sent it
  bool written = false;            // see ParameterPuller::TakeWritten
};

/// Checks the run's fragments against the model and lays them out; as the configuration says when there are
/// none yet. FailedPrecondition when they do not fit.
absl::StatusOr<std::vector<FragmentLayout>> LayOutFragments(const Manifest& manifest,
                                                            const std::vector<FragmentHead>& heads,
                                                            const SyncOptions& sync);

/// Keeps a replica on the published parameters: pulls every fragment, keeps the decoded values as the base,
/// and writes them into the replica. Not thread-safe. Memory: 4 bytes per parameter for the bases, and one
/// payload of the largest fragment.
class ParameterPuller {
 public:
  /// The layout is of `replica`'s manifest (LayOutFragments). All pointers outlive this object.
  ParameterPuller(Session* session, Replica* replica, std::vector<FragmentLayout> layout,
                  const WorkerContext& context);

  enum class Until : uint8_t {
    kHead,  // whatever is published now, as soon as something is
    kNext,  // a version above the present base
  };
  enum class Outcome : uint8_t {
    kAdopted,      // the replica and the bases hold the new versions
    kFinished,     // there will be no newer version
    kInterrupted,  // the wait ended because of a command (stop, drain, resync, seed, or the run
                   // was stopped): see the worker status
  };
  /// Waits for as long as it takes, following commands. Fragments that have no newer version when a command
  /// comes, or when they are finished, stay as they were; kFinished when all are.
  absl::StatusOr<Outcome> Advance(Until until);

  const std::vector<FragmentBase>& fragments() const { return fragments_; }
  /// Whether the replica was written from this fragment's base since the last call.
  bool TakeWritten(size_t fragment) { return std::exchange(fragments_[fragment].written, false); }
  /// See HashPublished.
  ContentHash HashBase(size_t fragment);
  /// Of the first fragment, for people and for evaluation.
  Version version() const { return fragments_.front().version.value_or(Version()); }
  /// What to do with the versions adopted last: that of the first fragment, with which tokens are counted.
  const RoundPlan& plan() const { return fragments_.front().plan; }
  /// The newest configuration that is in force in a round of the versions adopted last. Fragments' rounds end
  /// one after the other, so they may differ.
  uint64_t config_version() const;
  /// For a loop that goes on by itself; nothing may be called after it.
  std::vector<FragmentBase> TakeFragments() && { return std::move(fragments_); }
  RunState run_state() const { return run_state_; }

 private:
  absl::StatusOr<Outcome> AdvanceFragment(FragmentBase& fragment, Until until);
  /// False: there is more to pull, with `request`.
  absl::StatusOr<bool> Adopt(FragmentBase& fragment, const PulledVersion& pulled, PullRequest& request);

  /// What the coordinator says that it waits for: at first, then once a minute.
  void LogWait(const FragmentBase& fragment, const std::string& waiting_for);

  Session* const session_;
  Replica* const replica_;
  const WorkerContext context_;
  std::vector<FragmentBase> fragments_;
  std::vector<std::byte> payload_;  // of the pull in progress
  RunState run_state_ = RunState::kUnknown;
  std::optional<MonoTime> said_wait_;  // none: nothing, since something was adopted
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_PARAMETER_PULLER_H_
