#ifndef ATOLL_WORKER_SYNC_CONNECTION_H_
#define ATOLL_WORKER_SYNC_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/content_hash.h"
#include "common/ids.h"
#include "core/confirmation.h"
#include "core/contribution.h"
#include "core/manifest.h"
#include "core/membership.h"
#include "core/run_options.h"
#include "core/time_use.h"

// What a worker asks of its coordinator, in plain values. The fields mirror atoll/v1/coordinator.proto, where
// they are described; docs/reference/wire_format.md has the order of calls.

namespace atl {

/// Who calls, in which life, of which run (WorkerRef on the wire).
struct MemberRef {
  std::string run_id;
  Epoch epoch;
  WorkerName worker;
  Incarnation incarnation;
  friend bool operator==(const MemberRef&, const MemberRef&) = default;
};

/// The worker's token files; `fingerprint` is the SHA-256 that is equal for equal files.
struct DatasetSummary {
  std::string tokenizer;
  uint32_t vocabulary = 0;
  uint64_t train_tokens = 0;
  std::string fingerprint;
};

/// What a worker computes with (Capabilities on the wire).
struct DeviceDescription {
  std::string device;                // cpu, cuda:0
  std::string device_name;           // model of the processor or the accelerator
  uint32_t threads = 0;              // that compute
  uint64_t memory_bytes = 0;         // main memory that it may use; 0: not known
  uint64_t device_memory_bytes = 0;  // of the accelerator; 0: there is none, or it is not known
};

struct JoinParameters {
  WorkerName worker;
  std::string secret;
  std::string public_key = {};  // Ed25519: what its confirmations are signed with; empty: none are sent
  WorkerRole role = WorkerRole::kTrainer;
  std::string manifest_hash = {};  // empty: the model is not known yet
  DeviceDescription device = {};
  std::optional<DatasetSummary> dataset = {};  // trainers and evaluators
  std::string expected_run = {};               // empty: any

  /// A worker that does not know the model yet only asks for the configuration.
  bool BecomesMember() const { return !manifest_hash.empty() || role == WorkerRole::kObserver; }
};

enum class RunState : uint8_t {
  kUnknown,
  kStarting,
  kTraining,
  kDegraded,
  kCritical,
  kFinished,
  kPaused,
  kStopped
};

struct FragmentHead {
  FragmentId id;
  Version version;
  uint64_t elements = 0;  // float32 values of the flat vector, padding included
  std::string endpoint;   // empty: the address that answered
};

/// The worker's part of the shared data.
struct DataPart {
  uint32_t partition = 0;
  uint32_t partitions = 0;
  uint64_t samples_consumed = 0;  // in committed contributions
  friend bool operator==(const DataPart&, const DataPart&) = default;
};

/// One contribution, named within its member and epoch.
struct PushKey {
  FragmentId fragment;
  Version base;
  uint32_t sequence = 0;
  friend bool operator==(const PushKey&, const PushKey&) = default;
};

struct JoinInfo {
  MemberRef member;
  Duration lease{};
  Duration heartbeat{};
  RunOptions run;  // parsed and checked
  uint64_t config_version = 0;
  std::string manifest_hash;  // empty: the run is not seeded
  std::optional<DataPart> data;
  std::vector<FragmentHead> fragments;  // empty until the run is seeded
  RunState state = RunState::kUnknown;
  bool seed_granted = false;
  bool returning = false;
  std::vector<PushKey> accepted;  // already held, on the current bases
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
};

/// Values of WorkerPhase in types.proto.
enum class WorkerPhase : uint8_t {
  kUnknown = 0,
  kJoining = 1,
  kSeeding = 2,
  kPulling = 3,
  kEvaluating = 4,
  kTraining = 5,
  kPushing = 6,
  kWaiting = 7,
  kLeaving = 8,
};

/// A worker's account of itself; shown, never trusted for the mathematics.
struct ProgressReport {
  WorkerPhase phase = WorkerPhase::kUnknown;
  Version base;
  uint32_t step = 0;   // inner steps done in this round
  uint32_t steps = 0;  // of so many
  double loss = 0;     // of the last inner step, nats per token
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;  // while computing, over the last steps (ComputeRate)
  uint64_t memory_bytes = 0;
  TimeSpent training;       // of the training thread, since the worker was made
  TimeSpent exchanges;      // of the threads beside it, together
  std::string waiting_for;  // in words; empty while it computes
};

/// Loss of the published parameters of one version on held-out text.
struct EvaluationReport {
  Version version;
  double loss = 0;  // nats per token
  uint64_t tokens = 0;
  friend bool operator==(const EvaluationReport&, const EvaluationReport&) = default;
};

enum class WorkerCommand : uint8_t { kNone, kDrain, kRestart, kStop, kResync };

/// What a heartbeat tells.
struct HeartbeatReport {
  ProgressReport progress;
  std::vector<EvaluationReport> evaluations;
  std::vector<Confirmation> confirmations;
};

struct HeartbeatReply {
  Duration lease{};
  RunState state = RunState::kUnknown;
  std::vector<FragmentHead> fragments = {};
  bool seed_granted = false;
  WorkerCommand command = WorkerCommand::kNone;
  bool at_once = false;  // with drain and restart: do not finish the round, push what is done
};

/// One fragment's initial parameters, `values` flat as core/fragment_plan.h lays them out.
struct SeedFragment {
  FragmentId id;
  std::span<const float> values;
};

/// What an attempt at a pull that broke has brought of its payload: these blocks stand in their place, from
/// the first on.
struct PullProgress {
  Epoch epoch;
  Version version;
  std::optional<Version> delta_base = std::nullopt;
  std::vector<Hash128> blocks = {};  // of kHashBlockBytes each
};

struct PullRequest {
  FragmentId fragment;
  std::optional<Version> after;  // wait for a version above this one; none: the head
  Duration wait{};               // how long the call may wait for it, at most 60 s
  uint64_t elements = 0;         // expected size of the flat vector
  CodecKind codec = CodecKind::kFp32;
  /// What is held bit for bit, of this epoch, and the codec of differences: the answer may be one.
  std::optional<Version> have = std::nullopt;
  CodecKind delta_codec = CodecKind::kInt8;
  bool zstd = false;  // chunks may come packed
  /// Not null: what the last attempt of the same pull, into the same buffer, has left; the next one goes on
  /// there. Written by every attempt.
  PullProgress* progress = nullptr;
};

enum class PullKind : uint8_t { kParameters, kNotYet, kRunFinished };

/// What a worker is to do with the version it pulled (RoundPlan on the wire).
struct PlannedRound {
  uint32_t inner_steps = 0;
  uint32_t active_workers = 1;
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  bool evaluate = false;
  Duration deadline{};
  std::optional<DataPart> data = std::nullopt;  // where to train this round; none: where the worker is
  uint64_t config_version = 0;                  // in force in this round; 0: not said
};

struct PulledVersion {
  PullKind kind = PullKind::kNotYet;
  Epoch epoch;
  Version version;
  ContentHash published;  // with a difference: of what comes of it
  PlannedRound plan;
  RunState state = RunState::kUnknown;
  std::string waiting_for;  // kNotYet
  /// Set: a difference to this version came, in the first bytes of the payload. Below the head: there is no
  /// plan, and the next one is to be asked for.
  std::optional<Version> delta_base = std::nullopt;
  uint64_t payload_bytes = 0;
  uint64_t first_byte = 0;  // those before it came with the attempt before
  uint64_t end_byte = 0;    // those from it on come side by side
  Version head;
  uint64_t wire_bytes = 0;  // payload and framing as protobuf
  Duration waited{};        // until the coordinator answered
  Duration transfer{};      // from then to the last byte
};

/// One contribution on its way. The payload is sent beside it and never changes between attempts.
struct PushHeader {
  PushKey key;
  CodecKind codec = CodecKind::kFp32;
  uint32_t payload_crc32c = 0;
  uint64_t tokens = 0;
  uint32_t steps = 0;
  std::optional<uint32_t> partition = std::nullopt;  // of the shared data; none: local data
  uint64_t samples_consumed = 0;                     // position in it after this contribution
  double mean_loss = 0;                              // nats per token
  bool zstd = false;  // chunks are packed on the wire where that makes them smaller
  friend bool operator==(const PushHeader&, const PushHeader&) = default;
};

/// The contribution is on the coordinator's disk.
struct PushReceipt {
  bool duplicate = false;
  Version head;
  uint32_t arrived = 0;
  uint32_t expected = 0;
  uint64_t wire_bytes = 0;
};

enum class PushStage : uint8_t { kUnknown, kPartial, kAccepted, kCommitted, kMissed };

struct PushStatus {
  PushStage stage = PushStage::kUnknown;
  uint64_t received_bytes = 0;
  Version head;
};

/// Confirmations that the coordinator shows, of one fragment. Nothing in them was checked.
struct ConfirmationsRequest {
  /// Those behind this one, in the order of version and worker.
  struct Cursor {
    Version version;
    WorkerName worker = {};
  };
  FragmentId fragment;
  Version first;  // both included
  Version last;
  std::optional<Cursor> after = std::nullopt;
  Duration timeout{};  // of the call; zero: that of any other
};
struct ShownConfirmations {
  std::vector<SignedConfirmation> confirmations;
  std::optional<ConfirmationsRequest::Cursor> next = std::nullopt;  // none: that was all
};

/// The coordinator as a worker sees it. One attempt per call; a failure carries its RejectionReason
/// (rejection.h). Cancelled means that this side ended the call (CancelPulls, EndPulls, CancelPushes): a call
/// that the other side cancelled is Unavailable. Thread-safe; calls block. Implemented over gRPC by
/// worker/client and by fakes in tests; decorated by RetryingConnection and MeteredConnection.
class CoordinatorConnection {
 public:
  virtual ~CoordinatorConnection() = default;

  /// Without BecomesMember, the answer describes the run: no incarnation, no data part.
  virtual absl::StatusOr<JoinInfo> Join(const JoinParameters& parameters) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member,
                                                   const HeartbeatReport& report) = 0;
  /// All fragments, in the order of their ids; version 0 appears when this returns OK.
  virtual absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                                      std::span<const SeedFragment> fragments) = 0;
  /// `payload` has CodecFor(request.codec).EncodedSize(request.elements) bytes and is filled only when the
  /// answer is kParameters; every chunk and the whole were then checked (of a difference: every chunk; what
  /// it makes of the base is the caller's to compare with `published`). After an error its contents are
  /// undefined, but for what request.progress says.
  virtual absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& request,
                                             std::span<std::byte> payload) = 0;
  /// Sends payload[from, end).
  virtual absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& header,
                                           std::span<const std::byte> payload, uint64_t from) = 0;
  virtual absl::StatusOr<PushStatus> GetPushStatus(const MemberRef& member, const PushKey& key) = 0;
  virtual absl::Status Leave(const MemberRef& member, const std::string& reason) = 0;
  /// One page of what all workers signed. Unimplemented: the coordinator is of a release that shows none.
  virtual absl::StatusOr<ShownConfirmations> GetConfirmations(const MemberRef& member,
                                                              const ConfirmationsRequest& request) {
    return absl::UnimplementedError("this connection shows no confirmations");
  }

  /// Ends a Pull in progress, and every later one, with Cancelled: the worker is to stop. From any thread.
  virtual void CancelPulls() = 0;
  /// Ends the Pulls that wait for an answer now with Cancelled, and no others: there is a command to follow.
  /// One whose bytes are on their way goes on. From any thread. A connection that never waits does nothing.
  virtual void EndPulls() {}
  /// Likewise for pushes: there is no time left.
  virtual void CancelPushes() = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_SYNC_CONNECTION_H_
