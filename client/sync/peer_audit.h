#ifndef ATOLL_CLIENT_SYNC_PEER_AUDIT_H_
#define ATOLL_CLIENT_SYNC_PEER_AUDIT_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "core/confirmation.h"

namespace atl {

struct PeerAuditOptions {
  /// Keys that were received from the workers themselves. Not empty: only the workers named here count, and
  /// each must sign with its key. Empty: the coordinator is believed when it says whose key is whose.
  PeerKeys pinned = {};
  /// Stop at the first worker that signed another hash, even when most agree with this one.
  bool any_difference = false;
};

/// Compares the hashes that other workers signed with the ones that the coordinator served this worker, so
/// that a coordinator cannot train workers on different parameters unnoticed (SECURITY.md).
///
/// A version is looked at after kLooks heartbeats in a row, because others finish their rounds later. It is
/// outvoted when at least as many workers signed another hash as signed this one, this worker included: a
/// single worker that differs may have damaged memory, or want to stop the run. Compare() fails when
/// kOutvoted of the last kRemembered versions were outvoted, and at once when the coordinator shows a
/// confirmation that the key beside it did not sign, or another key than a pinned one.
///
/// Thread-safe. Calls the connection without holding its lock.
class PeerAudit {
 public:
  static constexpr int kLooks = 3;
  static constexpr size_t kOutvoted = 2;
  static constexpr size_t kRemembered = 8;
  static constexpr size_t kWatched = 1024;  // versions of all fragments; the oldest are given up
  static constexpr int kPages = 8;          // of one fragment, in one look
  static constexpr size_t kSilent = 16;     // versions in a row without a pinned worker: worth a warning
  /// Pause after UNIMPLEMENTED, unless the worker joins again. A coordinator of an earlier release answers
  /// this permanently, a proxy only while its coordinator restarts; the two cannot be told apart.
  static constexpr Duration kAskAgain = std::chrono::seconds(60);
  /// All calls of one look together, however many fragments there are; a quarter of a shorter lease. A look
  /// takes the heartbeat's thread, so it may not last as long as a lease.
  static constexpr Duration kLongestLook = std::chrono::seconds(3);

  /// `connection` outlives this object, as do the pointers of the context.
  PeerAudit(PeerAuditOptions options, CoordinatorConnection* connection, const WorkerContext& context)
      : options_(std::move(options)), connection_(connection), context_(context) {}

  /// This worker signed `mine`, and it is what the coordinator served.
  void Signed(const MemberRef& member, const Confirmation& mine) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The coordinator went back openly: versions above these heads are lost, and others get their numbers.
  /// What was seen of them so far still counts towards kOutvoted, so that going back hides nothing.
  void DropAbove(const std::vector<FragmentHead>& heads) ABSL_LOCKS_EXCLUDED(mutex_);

  /// One look at what others signed; after a heartbeat that brought `lease`. OK while there is no reason to
  /// stop, also when the coordinator does not answer. The error is for people, and makes the exit code
  /// kUntrusted. The look ends with the first call that fails, and when its time is over; the next one begins
  /// with the fragments that this one did not get to.
  absl::Status Compare(const MemberRef& member, Duration lease = kLongestLook * 4)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Place = std::pair<FragmentId, Version>;
  struct Watched {
    ContentHash mine = {};
    int looks = 0;
    std::set<WorkerName> equal = {};
    std::map<WorkerName, ContentHash> different = {};
  };

  /// Does not ask until then in this life of the worker.
  struct NotShown {
    Incarnation incarnation;
    MonoTime until;
  };

  std::vector<ConfirmationQuery> Requests(const MemberRef& member) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteNotShown(const MemberRef& member) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether the look may go on with another fragment.
  absl::StatusOr<bool> Look(const MemberRef& member, ConfirmationQuery request, MonoTime end)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Note(const MemberRef& member, const SignedConfirmation& theirs) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status JudgeOldest() ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether it was outvoted; remembers it.
  bool NoteVote(const Watched& watched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Judge(const Place& place, const Watched& watched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PeerAuditOptions options_;
  CoordinatorConnection* const connection_;
  const WorkerContext context_;
  Mutex mutex_;
  Epoch epoch_ ABSL_GUARDED_BY(mutex_){};
  std::map<Place, Watched> watched_ ABSL_GUARDED_BY(mutex_);
  FragmentId first_ ABSL_GUARDED_BY(mutex_){};                 // of the next look
  std::deque<bool> outvoted_ ABSL_GUARDED_BY(mutex_);          // the last versions that others signed too
  size_t silent_ ABSL_GUARDED_BY(mutex_) = 0;                  // versions in a row that nobody else signed
  std::optional<NotShown> not_shown_ ABSL_GUARDED_BY(mutex_);  // after UNIMPLEMENTED
  bool said_not_shown_ ABSL_GUARDED_BY(mutex_) = false;        // once
  bool agreed_ ABSL_GUARDED_BY(mutex_) = false;                // said once
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_PEER_AUDIT_H_
