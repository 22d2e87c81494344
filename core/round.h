#ifndef ATOLL_CORE_ROUND_H_
#define ATOLL_CORE_ROUND_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "core/membership.h"
#include "core/round_policy.h"

namespace atl {

/// How a round opens.
struct RoundOpening {
  Epoch epoch = {};
  FragmentId fragment = {};
  Version base = {};
  MonoTime opened_at = {};               // the base's publication
  std::vector<WorkerName> members = {};  // live trainers at that moment
  bool awaits_first_join = false;        // no trainer was live since the coordinator started
};

/// The open round of one fragment: who is waited for, and what arrived. Pure state, time is an argument; not
/// thread-safe. Who is live is the membership's to know; every call names the same one.
///
/// Who is waited for. A worker that was a live trainer when the base was published is a *candidate*. A
/// live candidate is expected when it has begun to pull the base, and, for one lease after the round's start,
/// even before that (else the fastest worker could pull, push and close the round alone). A worker that joins
/// later is not expected: it may contribute if it is in time, and is a candidate in the next round; so a
/// joiner never delays others. Only when no candidate is live and none has contributed are such workers
/// waited for. One whose contribution was refused for its content (not finite, a replay) is not waited for,
/// since the next would be no better. Nor is one that came back as evaluator. A silent worker that is lost is
/// not waited for, and is again when it renews its lease. A draining worker is a candidate as any other until
/// it leaves: it may not have heard of the command yet, and begins rounds until it has. What arrived from a
/// worker stays, wherever it goes. Without barriers (RoundMode::kAsync) every live trainer whose contribution
/// on this base is not there is named as waited for; nothing hangs on it.
///
/// Late contributions. A contribution on an earlier base may arrive too (whether it still may is decided
/// before, FragmentRound): it becomes part of the round, but neither takes the place of its worker's
/// contribution on this base nor counts toward quorum or minimum. (worker, base) counts once.
///
/// Gathering. At version 0, and when a worker joins while no candidate is live and none has contributed, the
/// round gathers: members and joiners are candidates. Gathering ends when `start_workers` candidates
/// are live, or some time after the first: the deadline at version 0, one lease later on. The round does not
/// close while it gathers, and its deadline counts from the end of the gathering.
class Round {
 public:
  Round(const RoundOpening& opening, const RoundOptions& options);

  Epoch epoch() const { return epoch_; }
  FragmentId fragment() const { return fragment_; }
  Version base() const { return base_; }
  MonoTime opened_at() const { return opened_at_; }

  /// An active trainer joined, or came back as a new incarnation; the membership already has it.
  void Joined(std::string_view worker, MonoTime now, const Membership& membership);

  /// A lost trainer renewed its lease: the same life goes on. If nobody else was there, the deadline starts
  /// again, else after an outage of all workers the first of them would close the round alone.
  void Revived(std::string_view worker, MonoTime now, const Membership& membership);

  /// After a pause: deadline, grace and gathering start again.
  void Resumed(MonoTime now);

  /// A finished run was extended: for one lease nobody needs to be there yet.
  void AwaitFirstJoin() { awaits_first_join_ = true; }

  /// A trainer began to pull this base, or reports that it computes on it (after a restart of the
  /// coordinator).
  void Pulled(std::string_view worker);

  /// What it pushed on this base was refused for what is in it: nobody waits for another one, though it would
  /// count. Until it joins again.
  void Rejected(std::string_view worker);

  enum class Arrival : uint8_t { kAccepted = 1, kDuplicate = 2 };

  /// What a contribution of this key would be: kDuplicate when the same content is already here,
  /// AlreadyExists when other content of the same worker on the same base is, FailedPrecondition when epoch
  /// or fragment is not this round's, or the base is above it.
  absl::StatusOr<Arrival> Check(const Contribution& contribution) const;

  /// Check, then keeps it when it is new.
  absl::StatusOr<Arrival> Arrived(const Contribution& contribution, MonoTime now);

  /// Its contribution on this round's own base.
  bool HasArrived(std::string_view worker) const { return HasArrived(worker, base_); }
  bool HasArrived(std::string_view worker, Version base) const;

  /// What arrived of this worker, by base.
  std::vector<ContributionKey> KeysOf(std::string_view worker) const;
  /// What arrived, in summation order.
  std::vector<Contribution> Contributions() const;
  size_t arrived_count() const { return arrivals_.size(); }  // late ones included

  bool Gathering(MonoTime now) const;

  /// From when the deadline counts, as far as is known now.
  MonoTime StartedAt(MonoTime now) const;

  /// Valid until the next call. What arrives or begins to pull is taken into the view that is kept, so that
  /// only a change of the membership, and the two moments at which time alone changes who is waited for, cost
  /// by the number of members.
  const RoundView& View(MonoTime now, const Membership& membership) const;

 private:
  struct Kept {
    bool valid = false;
    uint64_t changes = 0;  // of the membership that it was made of
    bool gathering = false;
    bool may_yet_pull = false;
    bool abandoned = false;
    size_t not_pulled = 0;  // of view.expected
    RoundView view = {};
  };
  struct ArrivedAt {
    Contribution contribution = {};
    MonoTime at = {};
  };
  size_t LiveCandidates(const Membership& membership) const;
  bool Abandoned(const Membership& membership) const;
  std::vector<WorkerName> Finishing(const Membership& membership) const;
  std::vector<WorkerName> Expected(MonoTime now, const Membership& membership) const;
  std::vector<WorkerName> NextRound(MonoTime now, const std::vector<WorkerName>& expected,
                                    const Membership& membership) const;
  void EndGatheringIfComplete(MonoTime now, size_t candidates);
  bool MayYetPull(MonoTime now) const { return now < StartedAt(now) + options_.lease; }
  void MakeView(MonoTime now, const Membership& membership) const;
  void TakeIntoView(const ContributionKey& key, MonoTime at);

  const Epoch epoch_;
  const FragmentId fragment_;
  const Version base_;
  const MonoTime opened_at_;
  const RoundOptions options_;
  std::set<WorkerName, std::less<>> candidates_;
  std::set<WorkerName, std::less<>> pulled_;
  std::set<WorkerName, std::less<>> rejected_;
  std::map<std::pair<WorkerName, Version>, ArrivedAt> arrivals_;
  MonoTime started_at_;  // of the round, or of its gathering while that goes on
  bool gathering_ = false;
  bool awaits_first_join_;                // while nobody has joined this round
  std::optional<MonoTime> gather_until_;  // set by the first candidate
  mutable Kept kept_;
};

}  // namespace atl

#endif  // ATOLL_CORE_ROUND_H_
