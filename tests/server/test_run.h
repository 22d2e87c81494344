#ifndef ATOLL_TESTS_SERVER_TEST_RUN_H_
#define ATOLL_TESTS_SERVER_TEST_RUN_H_

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "core/codec.h"
#include "server/admin/admin_control.h"
#include "server/create_coordinator.h"
#include "storage/memory_store.h"
#include "tests/common/fake_clock.h"
#include "tests/fakes/faulty_store.h"

namespace atl {

/// A run of two small tensors, two workers, uniform weights, on a memory store with a clock of its own.
CoordinatorOptions SmallRun();
/// 300 and 500 values: 1024 with the gaps.
Manifest SmallManifest();
inline constexpr uint64_t kSmallElements = 1024;
/// Tokens of one inner step of SmallRun().
inline constexpr uint64_t kStepTokens = 32;
/// A vector that is zero in the gaps between the tensors of SmallManifest, value(i) elsewhere.
std::vector<float> Fill(const std::function<float(size_t)>& value);

std::span<const std::byte> AsBytes(const std::vector<float>& values);
std::vector<float> AsFloats(const Snapshot& snapshot);

/// Whether it becomes true within a minute.
bool Eventually(const std::function<bool()>& condition);

/// Collects a coordinator's events and lets a test wait for one.
class EventCatcher {
 public:
  explicit EventCatcher(Coordinator* coordinator, uint64_t after = 0);
  ~EventCatcher();
  /// The first event of this kind, waiting for it; nullopt when it does not come within a minute.
  std::optional<EventView> WaitFor(EventKind kind, size_t nth = 0);
  std::vector<EventView> events();

 private:
  Coordinator* const coordinator_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<EventView> events_;
  uint64_t id_ = 0;
};

struct PushVariation {
  uint64_t tokens = 64;
  uint32_t steps = 2;
  uint64_t samples = 8;
  double loss = 2.5;
  CodecKind codec = CodecKind::kFp32;
  std::optional<uint64_t> payload_bytes = std::nullopt;
  std::optional<uint32_t> crc = std::nullopt;
  FragmentId fragment = FragmentId(0);
  uint32_t sequence = 0;
  std::optional<uint32_t> partition = std::nullopt;
};

/// What a coordinator under test gets besides; made anew at every start.
struct TestParts {
  const ConfigCodec* config_codec = nullptr;
  std::function<std::unique_ptr<Launcher>()> make_launcher = nullptr;
  CoordinatorObserver* observer = nullptr;
};

/// One coordinator under test, restartable.
class TestRun {
 public:
  explicit TestRun(CoordinatorOptions options = SmallRun(), TestParts parts = {});
  ~TestRun();

  /// Ends the coordinator and opens the same disk again.
  absl::Status Restart();
  void Stop() { coordinator_.reset(); }
  /// From the next start on.
  void UseCodec(const ConfigCodec* codec) { parts_.config_codec = codec; }

  Coordinator& coordinator() { return *coordinator_; }
  AdminControl& admin() { return coordinator_->admin(); }
  FakeClock& clock() { return clock_; }
  Faults& faults() { return *faults_; }
  CoordinatorOptions& options() { return options_; }

  absl::StatusOr<JoinReply> TryJoin(const WorkerName& name, const std::string& secret_seed = "",
                                    WorkerRole role = WorkerRole::kTrainer);
  /// A trainer that has the model. Fails the test when it is refused.
  MemberRef Join(const WorkerName& name, WorkerRole role = WorkerRole::kTrainer);
  /// Version 0 of the small model, in one piece per fragment.
  absl::StatusOr<SeedResult> Seed(const MemberRef& caller, const std::vector<float>& values);
  /// Join the workers in this order and let the first seed `values`.
  std::vector<MemberRef> Begin(const std::vector<WorkerName>& names, const std::vector<float>& values);

  absl::StatusOr<PushResult> Push(const MemberRef& caller, uint64_t base, const std::vector<float>& values,
                                  const PushVariation& variation = {});
  PushHeader MakePush(uint64_t base, std::span<const std::byte> payload, const PushVariation& variation = {});
  /// Waits for the answer.
  absl::StatusOr<PullResult> Pull(const MemberRef& caller, std::optional<uint64_t> after = std::nullopt,
                                  FragmentId fragment = FragmentId(0), Duration wait = Seconds(60));
  /// The published values of a version above `after`.
  std::vector<float> Published(const MemberRef& caller, std::optional<uint64_t> after);
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& caller);
  /// Waits until the tensors of this version are on disk.
  void WaitForStored(uint64_t version);

 private:
  absl::Status Open();

  CoordinatorOptions options_;
  TestParts parts_;
  FakeClock clock_;
  std::shared_ptr<MemoryDisk> disk_ = NewMemoryDisk();
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_TEST_RUN_H_
