#ifndef ATOLL_TESTS_CLIENT_SYNC_FAKE_COORDINATOR_H_
#define ATOLL_TESTS_CLIENT_SYNC_FAKE_COORDINATOR_H_

#include <deque>
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

/// A coordinator in memory for one worker: every accepted contribution makes the next version, theta -=
/// decoded pseudo-gradient. Faults are scripted per call. For one thread, as the tests use it.
class FakeCoordinator final : public CoordinatorConnection {
 public:
  struct Fault {
    absl::Status status = {};
    bool applied = false;               // the call took effect, but its answer was lost
    uint64_t received_bytes = 0;        // Push: what arrived before the connection broke
    std::function<void()> before = {};  // the world changes at this moment
  };

  explicit FakeCoordinator(uint32_t fragments = 1);
  /// For another model than FakeReplica's.
  FakeCoordinator(Manifest manifest, uint32_t fragments);

  /// The next calls of this method ("Push") fail like this, in order.
  void Fail(const std::string& method, Fault fault) {
    const MutexLock lock(&mutex_);
    faults_[method].push_back(std::move(fault));
  }
  size_t Calls(const std::string& method) const {
    const MutexLock lock(&mutex_);
    const auto it = calls_.find(method);
    return it == calls_.end() ? 0 : it->second;
  }

  /// Publishes version 0 with every parameter at `value`.
  void SeedWith(float value);
  /// Another worker's round: the head moves on, theta += shift, without this worker.
  void PublishWithout(float shift);
  /// From now on nobody knows which contributions counted.
  void Forget() { committed_.clear(); }
  /// As after an admin restore: the same contents as version head + 1 under a new epoch.
  void Restore();
  /// As a coordinator whose data directory was put back to `head`, with every parameter at `value`.
  void GoBack(Version head, float value);
  float first_parameter() const { return theta_[0][0]; }
  Version head() const { return head_; }
  const std::vector<float>& parameters() const { return theta_[0]; }
  bool seeded() const { return seeded_; }

  absl::StatusOr<JoinedRun> Join(const JoinCall& parameters) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& report) override;
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override;
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& request,
                                     std::span<std::byte> payload) override;
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& header,
                                   std::span<const std::byte> payload, uint64_t from) override;
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) override;
  absl::Status Leave(const MemberRef& member, const std::string& reason) override;
  void CancelPulls() override { pulls_cancelled = true; }
  void CancelPushes() override { pushes_cancelled = true; }

  // The run, as the next Join tells it.
  RunOptions run;
  uint64_t config_version = 1;
  bool grant_seed = false;
  uint64_t finish_at = 3;  // versions
  bool evaluate_all = false;
  bool run_tasks = false;  // with each evaluation
  uint64_t samples_consumed = 0;
  std::optional<uint32_t> partition = 0;
  std::vector<PushKey> accepted_at_join;
  HeartbeatReply heartbeat_reply;          // what heartbeats answer
  std::function<void(size_t)> on_not_yet;  // a pull waited in vain, for the so-manieth time
  bool hold_rounds = false;                // accepted contributions wait for PublishHeld
  uint64_t accept_late_by = 0;             // versions: such contributions are folded into the open round
  uint32_t accepting_for = 0;              // GetPushStatus: so many times "it is just being accepted"
  std::optional<DataPart> plan_data;       // in every plan
  RunState state = RunState::kTraining;    // in every answer to a pull before the end
  ContentHash PublishedHash() const;       // of the head, first fragment
  void PublishHeld();

  // What was seen.
  std::vector<JoinCall> joins;
  std::vector<PushHeader> headers;               // of every attempt
  std::vector<std::vector<std::byte>> payloads;  // of every attempt, whole
  std::vector<uint64_t> starts;                  // `from` of every attempt
  std::vector<EvaluationReport> evaluations;
  std::vector<std::string> left;  // reasons
  bool pulls_cancelled = false;
  bool pushes_cancelled = false;
  std::vector<Confirmation> confirmations;
  std::vector<std::string> waiting;  // what the worker said it waits for, with each heartbeat

 private:
  ContentHash HashOf(FragmentId fragment) const;  // of the head
  std::optional<Fault> NextFault(const std::string& method);
  absl::Status CheckMember(const MemberRef& member) const;
  absl::Status Accept(const PushHeader& header, std::span<const std::byte> payload);

  const Manifest manifest_;
  std::vector<FragmentLayout> layout_;
  std::vector<std::vector<float>> theta_;
  mutable Mutex mutex_;  // what heartbeats of the worker's own thread use too
  std::map<std::string, std::deque<Fault>> faults_;
  std::map<std::string, size_t> calls_;
  bool seeded_ = false;
  Version head_;
  Epoch epoch_{77};
  uint64_t incarnation_ = 0;
  size_t not_yet_ = 0;
  std::vector<std::optional<std::pair<PushHeader, std::vector<std::byte>>>> held_;
  std::vector<PushKey> committed_;
  std::map<uint64_t, uint64_t> partial_;  // base version -> bytes
};

/// A small run: H = 4, constant learning rate 0.1, fp32, 3 versions.
RunOptions SmallRun();

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_FAKE_COORDINATOR_H_
