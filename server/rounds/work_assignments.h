#ifndef ATOLL_SERVER_ROUNDS_WORK_ASSIGNMENTS_H_
#define ATOLL_SERVER_ROUNDS_WORK_ASSIGNMENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.h"
#include "core/contribution.h"
#include "core/data_shares.h"
#include "core/membership.h"
#include "core/pace.h"
#include "core/run_options.h"
#include "storage/run_store.h"

namespace atl {

/// What each worker was given to do on which base: inner steps by its speed, and its place in the shared
/// data. What a contribution claims is capped by it. A worker of several ranks takes their part of the tokens
/// in each step. Counted with fragment 0, as tokens are: all fragments of
/// a worker's round come from the same steps. Pure state, not thread-safe.
class WorkAssignments {
 public:
  /// `max_ranks`: what a worker counts with whose ranks are not known (after a restart).
  explicit WorkAssignments(const RunOptions& run, uint32_t max_ranks = 1);

  void Restore(const std::vector<PartitionEntry>& partitions);
  /// After a restart: how fast each worker was, from its steps in each round and the time between the round's
  /// close and that of the one before. A round takes all of them the same time, so this says little about
  /// rounds of equal steps, and all about those whose steps were given by speed. Ascending by version.
  void LearnPace(const std::vector<RoundRecord>& rounds);

  /// A new life of the worker: nothing that was given to the life before counts, but for the place in the
  /// data that it was reading from, which it gets again.
  void Joined(const Member& member);
  /// Processes that train together as this worker, as it said; at most max_ranks count.
  void SetRanks(const WorkerName& worker, uint32_t ranks);
  /// Of the active trainers. A worker whose ranks are not known counts as one.
  uint64_t ActiveRanks(const Membership& membership) const;
  void Left(const WorkerName& worker) { shares_.Release(worker); }
  /// Left; a worker that joins under its name is new.
  void Forget(const WorkerName& worker);

  struct Assigned {
    uint32_t steps = 0;
    std::optional<DataPlace> go_to = std::nullopt;  // unless the worker itself said that it is there
  };
  /// For a trainer that pulls this base; the same when it asks again. `run` is the open round's
  /// configuration.
  Assigned Assign(const Member& member, Version base, const RunOptions& run, const Membership& membership,
                  MonoTime now);

  /// Lowers what the contribution claims to what its worker was given, or could have been given at most if
  /// that is not known (after a restart); names the partition when it does not. InvalidArgument for a
  /// nonexistent partition.
  absl::Status Cap(const Member& member, const RunOptions& run, Contribution& contribution) const;

  /// `claimed`: the position as the worker has it, before it was capped.
  void Accepted(const Contribution& contribution, uint64_t claimed, MonoTime now);
  /// It came too late; its worker keeps what is in it when `carried`.
  void Rejected(const Contribution& contribution, uint64_t claimed, bool carried);
  /// Left out of its round permanently; `others` of the same round are still to be committed.
  void Excluded(const Contribution& contribution, const std::vector<Contribution>& others);
  /// Positions after a commit of these.
  std::vector<PartitionEntry> After(FragmentId fragment,
                                    const std::vector<Contribution>& contributions) const;
  void Committed(FragmentId fragment, const std::vector<Contribution>& contributions);

  /// Of the latest plan; 0: none yet.
  uint32_t steps(const WorkerName& worker) const;
  double steps_per_second(const WorkerName& worker) const;
  const DataShares& shares() const { return shares_; }
  uint32_t max_ranks() const { return max_ranks_; }

 private:
  struct Assignment {
    Version base = {};
    uint32_t steps = 0;
    std::optional<DataPlace> from = std::nullopt;
    MonoTime at = {};
  };
  struct Account {
    std::deque<Assignment> given = {};  // the newest last
    PaceEstimate pace = {};
    std::optional<DataPlace> believed = std::nullopt;  // as it said itself, or was told in a Join
    std::optional<DataPlace> carried = std::nullopt;
    uint32_t ranks = 0;  // 0: not known
  };
  const Assignment* Find(const WorkerName& worker, Version base) const;
  uint32_t StepsFor(const WorkerName& worker, const RunOptions& run, const Membership& membership) const;
  std::optional<DataPlace> PlaceFor(const Member& member, Version base, const Membership& membership,
                                    MonoTime now);

  /// Whatever they were reading may be read by another. Looks at all readers only after a change of the
  /// membership, or when one of those that are not live is long gone.
  void ReleaseLongGone(const WorkerName& but, const Membership& membership, MonoTime now);

  uint32_t RanksOf(const WorkerName& worker) const;

  uint32_t max_ranks_;
  DataShares shares_;
  std::optional<uint64_t> readers_checked_ = std::nullopt;  // Membership::changes() at the last look
  MonoTime reader_gone_at_ = {};                            // when one of them is long gone, as things stood
  std::map<WorkerName, Account> accounts_;
  std::set<WorkerName> islands_;  // of several ranks
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_WORK_ASSIGNMENTS_H_
