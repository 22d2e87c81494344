#ifndef ATOLL_CLIENT_SYNC_CONNECTION_H_
#define ATOLL_CLIENT_SYNC_CONNECTION_H_

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
#include "core/manifest.h"
#include "core/protocol/confirmation_page.h"
#include "core/protocol/heartbeat.h"
#include "core/protocol/join.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/pull.h"
#include "core/protocol/push.h"
#include "core/run_options.h"

// What a worker asks of its coordinator. The calls and replies are those of core/protocol; the structs here
// add what only a worker knows. docs/reference/wire_format.md has the order of calls.

namespace atl {

/// The run as a worker has joined it.
struct JoinedRun : JoinReply {
  RunOptions run;  // config_bytes, parsed and checked
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

/// One attempt at a pull: the call, and what its answer must look like.
struct PullRequest {
  PullCall call;
  uint64_t elements = 0;  // expected size of the flat vector
  CodecKind codec = CodecKind::kFp32;
  CodecKind delta_codec = CodecKind::kInt8;  // of differences
  /// Not null: what the last attempt of the same pull, into the same buffer, has left; the next one goes on
  /// there. Written by every attempt.
  PullProgress* progress = nullptr;
};

/// The answer to a pull, with `end_byte` set, and what its transfer took. The bytes before `first_byte` came
/// with the attempt before, those from `end_byte` on come side by side.
struct PulledVersion : PullReply {
  uint64_t wire_bytes = 0;  // payload and framing as protobuf
  Duration waited{};        // until the coordinator answered
  Duration transfer{};      // from then to the last byte
};

/// The answer to a push, and the bytes that it took.
struct PushReceipt : PushReply {
  uint64_t wire_bytes = 0;
};

/// The coordinator as a worker sees it. One attempt per call; a failure carries its RejectionReason
/// (rejection.h). Cancelled means that this side ended the call (CancelPulls, EndPulls, CancelPushes,
/// CancelCalls): a call that the other side cancelled is Unavailable. Thread-safe; calls block. Implemented
/// over gRPC by client/rpc and by fakes in tests; decorated by RetryingConnection and MeteredConnection.
class CoordinatorConnection {
 public:
  virtual ~CoordinatorConnection() = default;

  /// Without BecomesMember, the answer describes the run: no incarnation, no data part.
  virtual absl::StatusOr<JoinedRun> Join(const JoinCall& call) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& call) = 0;
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
  virtual absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) = 0;
  virtual absl::Status Leave(const MemberRef& member, const std::string& reason) = 0;
  /// One page of what all workers signed; nothing in it was checked. `timeout` of zero is that of any other
  /// call. Unimplemented: the coordinator is of a release that shows none.
  virtual absl::StatusOr<ConfirmationPage> GetConfirmations(const MemberRef& member,
                                                            const ConfirmationQuery& query,
                                                            Duration timeout) {
    return absl::UnimplementedError("this connection shows no confirmations");
  }

  /// Ends a Pull in progress, and every later one, with Cancelled: the worker is to stop. From any thread.
  virtual void CancelPulls() = 0;
  /// Ends the Pulls that wait for an answer now with Cancelled, and no others: there is a command to follow.
  /// One whose bytes are on their way goes on. From any thread. A connection that never waits does nothing.
  virtual void EndPulls() {}
  /// Likewise for pushes, and the upload of initial parameters: there is no time left.
  virtual void CancelPushes() = 0;
  /// Likewise for calls with one answer, all but Leave: the worker is to stop. From now on a Leave takes no
  /// longer than `leave_within`; where that is shorter, one in progress begins again. A Join in progress that
  /// makes a member gets as long for its answer, because only then is a Leave possible. From any thread. A
  /// connection whose calls always end soon does nothing.
  virtual void CancelCalls(Duration leave_within) {}
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_CONNECTION_H_
