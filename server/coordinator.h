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
#include "core/contribution.h"
#include "core/manifest.h"
#include "core/protocol/confirmation_page.h"
#include "core/protocol/heartbeat.h"
#include "core/protocol/join.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/pull.h"
#include "core/protocol/push.h"
#include "server/publish/snapshot.h"
#include "server/views.h"

// The coordinator's use cases, without gRPC: what the data port and the admin port offer, with the calls and
// replies of core/protocol. docs/reference/wire_format.md gives the order of calls and the reason of every
// refusal; a refusal carries its reason as the absl::Status payload set by server/rejection.h, which
// server/rpc turns into google.rpc.ErrorInfo.

namespace atl {

class AdminControl;

struct SeedResult {
  std::vector<FragmentHead> fragments;
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

struct PushResult : PushReply {
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

struct PullResult {
  PullOutcome outcome = PullOutcome::kNotYet;
  SnapshotPtr snapshot;  // kParameters
  /// kParameters: sent in place of the snapshot's payload. It leads to its own version, which may still be
  /// below the head: then there is no plan, and the caller asks again.
  DeltaPtr delta;
  bool zstd = false;  // the caller gets packed chunks
  RoundPlan plan;     // kParameters
  RunState state = RunState::kStarting;
  std::string waiting_for;  // kNotYet
};

/// Thread-safe. No call waits for a round; Pull and events answer through callbacks.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  virtual absl::StatusOr<JoinReply> Join(const JoinCall& call) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& caller, const HeartbeatCall& call) = 0;
  virtual absl::Status Leave(const MemberRef& caller, const std::string& reason) = 0;

  virtual absl::StatusOr<std::unique_ptr<SeedSession>> StartSeed(const MemberRef& caller,
                                                                 const Manifest& manifest) = 0;
  virtual absl::StatusOr<std::unique_ptr<PushSession>> StartPush(const MemberRef& caller,
                                                                 const PushHeader& header) = 0;
  virtual absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& caller, const PushKey& key) = 0;

  /// What workers signed of the newest versions. NotFound: no such fragment, or the run is not seeded.
  virtual absl::StatusOr<ConfirmationPage> GetConfirmations(const ConfirmationQuery& query) = 0;

  /// `done` is called exactly once, possibly before Pull returns, never under a lock of the coordinator: with
  /// parameters, with kNotYet when the wait ran out, with kRunFinished, or with an error. Returns an id for
  /// CancelPull.
  using PullDone = std::function<void(absl::StatusOr<PullResult>)>;
  virtual uint64_t Pull(const MemberRef& caller, const PullCall& call, PullDone done) = 0;
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
