#ifndef ATOLL_TESTS_CLIENT_SYNC_STREAMING_COORDINATOR_H_
#define ATOLL_TESTS_CLIENT_SYNC_STREAMING_COORDINATOR_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/sync/connection.h"
#include "common/mutex.h"
#include "core/fragment_plan.h"

namespace atl {

/// A coordinator in memory whose fragments have rounds of their own: one closes when `workers` contributions
/// to its head are there, with the merge and the outer step of core/. Thread-safe, but for the public fields,
/// which are set before the first call; hooks are called without the lock.
class StreamingCoordinator final : public CoordinatorConnection {
 public:
  StreamingCoordinator(Manifest manifest, RunOptions options);

  /// Version 0: every parameter is `value`.
  void SeedWith(float value);
  /// As after an admin restore: the same contents as version head + 1 under a new epoch.
  void Restore();
  /// As a coordinator whose data directory was put back to version 0 of every fragment.
  void GoBack();
  /// From now on nobody knows which contributions counted.
  void Forget();
  /// Another worker's round: the head moves on, theta += shift.
  void PublishWithout(FragmentId fragment, float shift);

  Version head(uint32_t fragment) const;
  float first_parameter(uint32_t fragment) const;
  uint64_t tokens(uint32_t fragment) const;
  /// Of every contribution that counts: who, for what.
  std::vector<std::pair<WorkerName, PushKey>> counted() const;
  /// Of every attempt that reached it.
  std::vector<PushHeader> headers() const;
  std::vector<std::vector<std::byte>> payloads() const;
  std::vector<EvaluationReport> evaluations() const;
  bool cancelled() const;
  /// For another worker's process after CancelPulls.
  void Reopen();

  absl::StatusOr<JoinedRun> Join(const JoinCall& parameters) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& report) override;
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override;
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& request,
                                     std::span<std::byte> payload) override;
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& header,
                                   std::span<const std::byte> payload, uint64_t from) override;
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) override;
  absl::Status Leave(const MemberRef& member, const std::string& reason) override { return absl::OkStatus(); }
  void CancelPulls() override;
  void CancelPushes() override {}

  RunOptions run;
  uint32_t workers = 1;
  uint64_t config_version = 1;
  bool evaluate_all = false;
  /// Before a push reaches it: not OK fails it. After it took effect: not OK is answered all the same.
  std::function<absl::Status(const PushHeader&)> before_push;
  std::function<absl::Status(const PushHeader&)> after_push;
  std::function<void(const PullRequest&)> before_pull;
  HeartbeatReply heartbeat_reply;

 private:
  using Held = std::map<WorkerName, std::pair<PushHeader, std::vector<std::byte>>>;
  struct Fragment {
    FragmentLayout layout;
    Version head;
    uint64_t tokens = 0;
    std::vector<float> theta;
    std::vector<std::vector<float>> state;
    Held held;  // of the open round
  };
  absl::Status CheckMember(const MemberRef& member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Finished(const Fragment& fragment) const { return fragment.tokens >= run.total_tokens(); }
  absl::Status Accept(const WorkerName& worker, const PushHeader& header, std::span<const std::byte> payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(Fragment& fragment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Manifest manifest_;
  mutable Mutex mutex_;
  CondVar published_;
  std::vector<Fragment> fragments_ ABSL_GUARDED_BY(mutex_);
  bool seeded_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  Epoch epoch_ ABSL_GUARDED_BY(mutex_){77};
  std::map<WorkerName, uint64_t> incarnations_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<WorkerName, PushKey>> counted_ ABSL_GUARDED_BY(mutex_);
  std::vector<PushHeader> offers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<std::byte>> payloads_ ABSL_GUARDED_BY(mutex_);
  std::vector<EvaluationReport> evaluations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_STREAMING_COORDINATOR_H_
