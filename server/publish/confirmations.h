#ifndef ATOLL_SERVER_PUBLISH_CONFIRMATIONS_H_
#define ATOLL_SERVER_PUBLISH_CONFIRMATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "core/confirmation.h"
#include "core/protocol/confirmation_page.h"
#include "server/events/event_throttle.h"
#include "server/views.h"
#include "storage/run_store.h"

namespace atl {

enum class ConfirmationVerdict : uint8_t {
  kValid,     // signed by the worker's key, and of the published hash
  kDiverged,  // signed by the worker's key, and of another hash: the worker does not hold what was published
  kForged,    // not signed by the worker's key, or the worker has none
  kUnknown,   // of a version that is not known (any more)
};
/// "valid", "diverged", "forged", "unknown".
std::string_view VerdictName(ConfirmationVerdict verdict);

/// What a confirmation says about a version whose payload was published with the hash `published`.
ConfirmationVerdict JudgeConfirmation(const ConfirmationAuthor& author, std::string_view public_key,
                                      const Confirmation& confirmation,
                                      const std::optional<ContentHash>& published);

/// Who has signed the published hash of a version, and who another one, by name; nobody when its round has no
/// record.
void FillVotes(RunStore& store, FragmentId fragment, Version version, std::vector<WorkerName>& confirmed_by,
               std::vector<WorkerName>& denied_by);

/// The workers' signed word on the hash of each published version: judged as it comes with heartbeats, kept
/// with the version. Thread-safe; signatures are checked and records written outside the lock.
class Confirmations {
 public:
  /// Versions per fragment whose hash is remembered. A worker confirms the version that it trained on with
  /// the heartbeat after its round.
  static constexpr size_t kVersionsRemembered = 256;

  /// `store` outlives this object.
  Confirmations(RunStore* store, const Logger& log) : store_(store), log_(log) {}

  /// What was published by earlier lives of the coordinator.
  void Restore(const std::vector<RoundRecord>& rounds) ABSL_LOCKS_EXCLUDED(mutex_);
  void Published(FragmentId fragment, Version version, const ContentHash& hash) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Result {
    bool diverged = false;  // the worker is to pull again
    /// REPLICA_DIVERGED, naming worker, version and both hashes: once for each, and not too many of one
    /// worker.
    std::vector<EventView> events;
    std::vector<ConfirmationVerdict> verdicts;  // of each, in order
  };
  /// Those of one heartbeat. Signed ones are stored, of whatever hash; others are logged and dropped.
  Result Take(const ConfirmationAuthor& author, std::string_view public_key,
              std::span<const Confirmation> confirmations, MonoTime now) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Confirmations kept in memory beside those on disk, so that the workers can compare the last versions
  /// though their tensors are gone (checkpoint.keep_versions): those of the newest versions, of all fragments
  /// together.
  static constexpr size_t kShown = 16384;
  /// Versions that one page looks at.
  static constexpr uint64_t kVersionsInPage = 256;

  using KeyOf = std::function<std::string(const WorkerName&)>;
  /// What the workers signed, those on disk included, as far as `key_of` says that they did. Blocks on the
  /// disk.
  absl::StatusOr<ConfirmationPage> Show(const RunIdentity& run, const ConfirmationQuery& query,
                                        const KeyOf& key_of) ABSL_LOCKS_EXCLUDED(mutex_);

  /// A worker that joins under its name is new. Its signatures stay with the versions.
  void Forget(const WorkerName& worker) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The newest version of fragment 0 that the worker has confirmed to this coordinator.
  std::optional<Version> Newest(const WorkerName& worker) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using VersionKey = std::pair<FragmentId, Version>;
  std::optional<ContentHash> Hash(FragmentId fragment, Version version) const ABSL_LOCKS_EXCLUDED(mutex_);
  using Signers = std::map<WorkerName, SignedConfirmation>;
  void Keep(const ConfirmationAuthor& author, std::string_view public_key, const Confirmation& confirmation)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const SignedConfirmation& one) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Of one version, from memory and disk.
  absl::StatusOr<Signers> SignersOf(const RunIdentity& run, FragmentId fragment, Version version,
                                    const KeyOf& key_of) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Versions outside of it have no confirmations.
  ConfirmationQuery Narrowed(ConfirmationQuery query) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Confirmed(const WorkerName& worker, const Confirmation& confirmation) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether this divergence is news; it is not from here on.
  bool IsNew(const WorkerName& worker, const Confirmation& confirmation, MonoTime now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  RunStore* const store_;
  const Logger log_;
  mutable Mutex mutex_;
  std::map<VersionKey, ContentHash> published_ ABSL_GUARDED_BY(mutex_);
  std::map<WorkerName, Version> newest_ ABSL_GUARDED_BY(mutex_);
  std::map<VersionKey, std::set<WorkerName>> diverged_ ABSL_GUARDED_BY(mutex_);  // of published_, noted
  std::map<WorkerName, EventThrottle> divergences_ ABSL_GUARDED_BY(mutex_);      // announced
  std::map<Version, std::map<FragmentId, Signers>> shown_ ABSL_GUARDED_BY(mutex_);
  size_t shown_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_CONFIRMATIONS_H_
