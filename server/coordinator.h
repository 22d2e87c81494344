#ifndef ATOLL_SERVER_COORDINATOR_H_
#define ATOLL_SERVER_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "core/confirmation.h"
#include "core/contribution.h"
#include "core/manifest.h"
#include "core/membership.h"
#include "core/run_options.h"
#include "server/publish/confirmation_page.h"
#include "server/publish/snapshot.h"
#include "server/views.h"

// The coordinator's use cases, without gRPC: what the data port and the admin port offer, in plain values.
// docs/reference/wire_format.md gives the order of calls and the reason of every refusal; a refusal carries
// its reason as the absl::Status payload set by server/rejection.h, which server/rpc turns into
// google.rpc.ErrorInfo.

namespace atl {

class AdminControl;

/// Who is calling (WorkerRef on the wire).
struct Caller {
  std::string run_id;
  Epoch epoch;
  WorkerName worker;
  Incarnation incarnation;

  /// It joined as an observer and may look; its name is anybody's.
  bool observes() const { return incarnation == kObserverIncarnation; }
};

struct DatasetView {
  std::string tokenizer;
  uint32_t vocabulary = 0;
  uint64_t train_tokens = 0;
  std::string fingerprint;
};

struct JoinCall {
  WorkerName worker;
  std::string secret;
  WorkerRole role = WorkerRole::kTrainer;
  std::string manifest_hash;  // empty: not known yet
  CapabilitiesView capabilities;
  std::optional<DatasetView> dataset;
  std::string expected_run;  // empty: any
  std::string public_key;    // Ed25519, of its confirmations; empty: it signs nothing
  std::string address;       // IP address that the call came from; empty: this process
};

struct JoinResult {
  std::string run_id;
  Epoch epoch;
  Incarnation incarnation;
  Duration lease{};
  Duration heartbeat{};
  std::string config_bytes;  // serialised RunConfig
  uint64_t config_version = 0;
  std::string manifest_hash;  // empty: not seeded
  std::optional<PartitionView> data;
  std::vector<FragmentView> fragments;
  RunStateView state = RunStateView::kStarting;
  bool seed_granted = false;
  bool returning = false;
  std::vector<ContributionKey> accepted;
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  std::optional<Manifest> manifest;  // set for observers once the run is seeded
  uint64_t last_event_sequence = 0;  // of the newest event there is
};

struct HeartbeatCall {
  Caller caller;
  ProgressView progress;
  std::vector<EvaluationView> evaluations;
  std::vector<Confirmation> confirmations;
  std::optional<CapabilitiesView> capabilities;  // an older worker says it in Join only
};

struct HeartbeatResult {
  Duration lease{};
  RunStateView state = RunStateView::kStarting;
  std::vector<FragmentView> fragments;
  bool seed_granted = false;
  CommandView command = CommandView::kNone;  // repeated until it was obeyed
  bool at_once = false;                      // do not finish the round: push what is done
};

struct SeedResult {
  std::vector<FragmentView> fragments;
  std::vector<ContentHash> published;
};

/// An upload of version 0. One thread at a time. Destroying it before Finish leaves the run unseeded.
class SeedSession {
 public:
  virtual ~SeedSession() = default;
  /// Bytes of the fragment's flat float32 vector at `offset`, fragment by fragment, ascending without gaps.
  virtual absl::Status Append(FragmentId fragment, uint64_t offset, std::span<const std::byte> data) = 0;
  /// All or nothing; blocks until version 0 is on disk.
  virtual absl::StatusOr<SeedResult> Finish() = 0;
};

struct PushCall {
  Caller caller;
  FragmentId fragment;
  Version base;
  uint32_t sequence = 0;
  CodecKind codec = CodecKind::kFp32;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc32c = 0;
  uint64_t tokens = 0;
  uint32_t steps = 0;
  std::optional<uint32_t> partition;  // that samples_consumed is a position in; none: local data
  uint64_t samples_consumed = 0;
  double mean_loss = 0;
};

struct PushResult {
  bool duplicate = false;
  Version head;
  uint32_t arrived = 0;
  uint32_t expected = 0;
  bool late = false;  // its base was older than the run's mode expects (core/round_policy.h)
};

/// One upload of a contribution. One thread at a time; calls may block on the disk. Destroying it before
/// Finish leaves the bytes for a resumed upload.
class PushSession {
 public:
  virtual ~PushSession() = default;
  /// The contribution was accepted earlier: nothing needs to be sent, Finish answers at once.
  virtual bool already_accepted() const = 0;
  /// Where the client should continue from.
  virtual uint64_t received_bytes() const = 0;
  /// `data` has been checked against its chunk's crc32c.
  virtual absl::Status Append(uint64_t offset, std::span<const std::byte> data) = 0;
  /// Checks the whole payload (crc, structure, finite), makes it durable, counts it.
  virtual absl::StatusOr<PushResult> Finish() = 0;
};

struct PushStatusCall {
  Caller caller;
  FragmentId fragment;
  Version base;
  uint32_t sequence = 0;
};
enum class PushState : uint8_t { kUnknown, kPartial, kAccepted, kCommitted, kMissed };
struct PushStatusResult {
  PushState state = PushState::kUnknown;
  uint64_t received_bytes = 0;
  Version head;
};

/// A part of the payload of one version, or of one difference; at multiples of kWireChunkBytes.
struct PullPart {
  Version version;
  std::optional<Version> delta_base = {};
  uint64_t first_byte = 0;
  uint64_t end_byte = 0;  // 0: to the end
};
struct PullCall {
  Caller caller;
  FragmentId fragment;
  std::optional<Version> after;      // wait for a version above this one
  Duration wait{};                   // at most 60 s
  std::optional<Version> have = {};  // what the caller holds, bit for bit, of this epoch: it can follow
  bool unpacks_zstd = false;
};
enum class PullOutcome : uint8_t { kParameters, kNotYet, kRunFinished };
struct PullResult {
  PullOutcome outcome = PullOutcome::kNotYet;
  SnapshotPtr snapshot;  // kParameters
  /// kParameters: sent in place of the snapshot's payload. It leads to its own version, which may still be
  /// below the head: then there is no plan, and the caller asks again.
  DeltaPtr delta;
  bool zstd = false;   // the caller gets packed chunks
  RoundPlanView plan;  // kParameters
  RunStateView state = RunStateView::kStarting;
  std::string waiting_for;  // kNotYet
};

/// Thread-safe. No call waits for a round; Pull and events answer through callbacks.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  virtual absl::StatusOr<JoinResult> Join(const JoinCall& call) = 0;
  virtual absl::StatusOr<HeartbeatResult> Heartbeat(const HeartbeatCall& call) = 0;
  virtual absl::Status Leave(const Caller& caller, const std::string& reason) = 0;

  virtual absl::StatusOr<std::unique_ptr<SeedSession>> StartSeed(const Caller& caller,
                                                                 const Manifest& manifest) = 0;
  virtual absl::StatusOr<std::unique_ptr<PushSession>> StartPush(const PushCall& call) = 0;
  virtual absl::StatusOr<PushStatusResult> GetPushStatus(const PushStatusCall& call) = 0;

  /// What workers signed of the newest versions. NotFound: no such fragment, or the run is not seeded.
  virtual absl::StatusOr<ConfirmationPage> GetConfirmations(const ConfirmationQuery& query) = 0;

  /// `done` is called exactly once, possibly before Pull returns, never under a lock of the coordinator: with
  /// parameters, with kNotYet when the wait ran out, with kRunFinished, or with an error. Returns an id for
  /// CancelPull.
  using PullDone = std::function<void(absl::StatusOr<PullResult>)>;
  virtual uint64_t Pull(const PullCall& call, PullDone done) = 0;
  /// The caller is gone: `done` will be called with Cancelled, if it was not called yet.
  virtual void CancelPull(uint64_t id) = 0;
  /// Bytes that left in a pull, framing included; for the worker's account.
  virtual void CountPulledBytes(const WorkerName& worker, uint64_t bytes) = 0;

  /// Every event with sequence > after, in order: those kept on disk first, then as they happen, until
  /// Unsubscribe. `sink` is called from one thread at a time, must not block, and returns false to end the
  /// subscription.
  using EventSink = std::function<bool(const EventView&)>;
  virtual uint64_t Subscribe(uint64_t after_sequence, EventSink sink) = 0;
  virtual void Unsubscribe(uint64_t id) = 0;

  virtual StatusView GetStatus(uint32_t history) = 0;
  virtual std::vector<WorkerView> ListWorkers(bool all) = 0;

  /// What operators may do.
  virtual AdminControl& admin() = 0;

  /// Refuses new work with Unavailable, answers every waiting pull, lets the round that is closing commit and
  /// be stored, joins the threads. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_COORDINATOR_H_
