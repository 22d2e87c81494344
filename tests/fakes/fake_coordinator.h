#ifndef ATOLL_TESTS_FAKES_FAKE_COORDINATOR_H_
#define ATOLL_TESTS_FAKES_FAKE_COORDINATOR_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/coordinator.h"
#include "server/rejection.h"
#include "tests/fakes/fake_admin.h"

namespace atl {

/// A coordinator that does what a test tells it to, for what stands on top of one. Thread-safe; hooks are set
/// before the first call. Pulls without a hook wait until they are cancelled, answered or shut down.
class FakeCoordinator final : public Coordinator {
 public:
  /// An upload kept in memory. Hooks of the coordinator are called from its methods.
  class Push final : public PushSession {
   public:
    Push(FakeCoordinator* owner, uint64_t already) : owner_(owner), received_(already) {
      ++owner_->open_pushes;
    }
    ~Push() override { --owner_->open_pushes; }
    bool already_accepted() const override { return owner_->push_already_accepted; }
    uint64_t received_bytes() const override { return received_; }
    absl::Status Append(uint64_t offset, std::span<const std::byte> data) override {
      if (owner_->on_append) {
        if (absl::Status status = owner_->on_append(offset, data); !status.ok()) return status;
      }
      received_ += data.size();
      MutexLock lock(&owner_->mutex_);
      owner_->pushed_.append(reinterpret_cast<const char*>(data.data()), data.size());
      return absl::OkStatus();
    }
    absl::StatusOr<PushResult> Finish() override {
      if (owner_->on_push_finish) return owner_->on_push_finish();
      return PushResult{
          {.duplicate = owner_->push_already_accepted, .head = Version(7), .arrived = 1, .expected = 2}};
    }

   private:
    FakeCoordinator* const owner_;
    uint64_t received_;
  };

  class Seed final : public SeedSession {
   public:
    explicit Seed(FakeCoordinator* owner) : owner_(owner) {}
    absl::Status Append(FragmentId fragment, uint64_t offset, std::span<const std::byte> data) override {
      MutexLock lock(&owner_->mutex_);
      owner_->seeded_.append(reinterpret_cast<const char*>(data.data()), data.size());
      return absl::OkStatus();
    }
    absl::StatusOr<SeedResult> Finish() override {
      return SeedResult{.fragments = {{FragmentId(0), Version(0), 256}},
                        .published = {{.low = 1, .high = 2}}};
    }

   private:
    FakeCoordinator* const owner_;
  };

  absl::StatusOr<JoinReply> Join(const JoinCall& call) override {
    return on_join ? on_join(call) : absl::StatusOr<JoinReply>(JoinReply());
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& caller, const HeartbeatCall& call) override {
    return on_heartbeat ? on_heartbeat(call) : absl::StatusOr<HeartbeatReply>(HeartbeatReply());
  }
  absl::Status Leave(const MemberRef& caller, const std::string& reason) override {
    return on_leave ? on_leave(caller, reason) : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<SeedSession>> StartSeed(const MemberRef& caller,
                                                         const Manifest& manifest) override {
    return std::make_unique<Seed>(this);
  }
  absl::StatusOr<std::unique_ptr<PushSession>> StartPush(const MemberRef& caller,
                                                         const PushHeader& header) override {
    if (on_push_start) {
      if (absl::Status status = on_push_start(header); !status.ok()) return status;
    }
    return std::make_unique<Push>(this, push_resumes_at);
  }
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& caller, const PushKey& key) override {
    return PushStatusReply{
        .stage = PushStage::kPartial, .received_bytes = push_resumes_at, .head = Version(7)};
  }

  absl::StatusOr<ConfirmationPage> GetConfirmations(const ConfirmationQuery& query) override {
    return on_confirmations ? on_confirmations(query) : ConfirmationPage();
  }

  uint64_t Pull(const MemberRef& caller, const PullCall& call, PullDone done) override {
    if (on_pull) {
      done(on_pull(call));
      return 0;
    }
    MutexLock lock(&mutex_);
    waiting_.emplace(++last_pull_, std::move(done));
    return last_pull_;
  }
  void CancelPull(uint64_t id) override { AnswerOne(id, absl::CancelledError("the caller went away")); }
  void AnswerPulls(const absl::StatusOr<PullResult>& result) {
    for (uint64_t id = 1; id <= last_pull_; ++id) AnswerOne(id, result);
  }
  size_t waiting_pulls() const {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }
  void CountPulledBytes(const WorkerName& worker, uint64_t bytes) override { pulled_bytes += bytes; }

  uint64_t Subscribe(uint64_t after_sequence, EventSink sink) override {
    if (on_subscribe) on_subscribe(after_sequence, sink);
    MutexLock lock(&mutex_);
    sinks_.emplace(++last_subscription_, std::move(sink));
    return last_subscription_;
  }
  void Unsubscribe(uint64_t id) override {
    MutexLock lock(&mutex_);
    sinks_.erase(id);
  }
  void Publish(const EventView& event) {
    std::vector<EventSink> sinks;
    {
      MutexLock lock(&mutex_);
      for (const auto& [id, sink] : sinks_) sinks.push_back(sink);
    }
    for (const EventSink& sink : sinks) sink(event);
  }
  size_t subscriptions() const {
    MutexLock lock(&mutex_);
    return sinks_.size();
  }

  StatusView GetStatus(uint32_t history) override { return status_view; }
  std::vector<WorkerView> ListWorkers(bool all) override { return worker_views; }
  AdminControl& admin() override { return admin_control; }
  void Shutdown() override {
    AnswerPulls(Reject(RejectionReason::kShuttingDown, "the coordinator is shutting down"));
  }

  std::string pushed() const {
    MutexLock lock(&mutex_);
    return pushed_;
  }
  std::string seeded() const {
    MutexLock lock(&mutex_);
    return seeded_;
  }

  std::function<absl::StatusOr<JoinReply>(const JoinCall&)> on_join;
  std::function<absl::Status(const MemberRef&, const std::string&)> on_leave;
  std::function<absl::StatusOr<HeartbeatReply>(const HeartbeatCall&)> on_heartbeat;
  std::function<absl::StatusOr<ConfirmationPage>(const ConfirmationQuery&)> on_confirmations;
  std::function<absl::Status(const PushHeader&)> on_push_start;
  std::function<absl::Status(uint64_t, std::span<const std::byte>)> on_append;
  std::function<absl::StatusOr<PushResult>()> on_push_finish;
  std::function<absl::StatusOr<PullResult>(const PullCall&)> on_pull;
  std::function<void(uint64_t, const EventSink&)> on_subscribe;
  bool push_already_accepted = false;
  uint64_t push_resumes_at = 0;
  FakeAdmin admin_control;
  StatusView status_view;
  std::vector<WorkerView> worker_views;
  std::atomic<int> open_pushes{0};
  std::atomic<uint64_t> pulled_bytes{0};

 private:
  void AnswerOne(uint64_t id, absl::StatusOr<PullResult> result) {
    PullDone done;
    {
      MutexLock lock(&mutex_);
      const auto it = waiting_.find(id);
      if (it == waiting_.end()) return;
      done = std::move(it->second);
      waiting_.erase(it);
    }
    done(std::move(result));
  }

  mutable Mutex mutex_;
  std::map<uint64_t, PullDone> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> last_pull_{0};
  std::map<uint64_t, EventSink> sinks_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_subscription_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string pushed_ ABSL_GUARDED_BY(mutex_);
  std::string seeded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_FAKE_COORDINATOR_H_
