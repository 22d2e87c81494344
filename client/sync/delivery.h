#ifndef ATOLL_CLIENT_SYNC_DELIVERY_H_
#define ATOLL_CLIENT_SYNC_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "client/sync/context.h"
#include "client/sync/retry_policy.h"
#include "client/sync/session.h"

namespace atl {

/// What became of a contribution.
enum class Verdict : uint8_t {
  kCounted,    // it is on the coordinator's disk, or in a version already
  kLost,       // it will never count: adopt the head, give its content back
  kNotFinite,  // it will never count, and its content is worthless
};

struct DeliveryReport {
  Verdict verdict = Verdict::kCounted;
  bool duplicate = false;
  uint64_t wire_bytes = 0;  // of the upload that was acknowledged
  uint32_t arrived = 0;     // contributions of the round on the coordinator, when known
  uint32_t expected = 0;
  Version head = {};       // when known
  bool open = false;       // kLost: the round on this base still takes another one
  bool forgotten = false;  // kCounted: the coordinator no longer knows whether it counted; it may have
  absl::Status rejection = absl::OkStatus();  // kLost, kNotFinite: why
};

/// Whether the run takes another codec by now while the round still waits for this worker: it takes the run's
/// configuration and trains on the same base again. The push has no verdict: its content goes into the next
/// one, as PushJournal::TakeUp finds it, and is lost without a state directory.
bool HasOldCodec(const DeliveryReport& report);
void LogOldCodec(const PushHeader& header, const DeliveryReport& report, const Logger& log);
/// Of a push with the verdict kLost.
void LogLost(const PushHeader& header, const DeliveryReport& report, const Logger& log);

/// Brings one contribution to the coordinator, for as long as it takes. After every failure GetPushStatus
/// decides: what was accepted is not sent again, what arrived in part is resumed, the same bytes are sent
/// otherwise. The coordinator remembers the contributions of a limited number of rounds. A report about an
/// older one is `forgotten`: its content must not be sent again.
///   Cancelled   the worker is stopping; the fate is not known
///   others      final refusals (the reason is attached), or WRONG_EPOCH from Session::Rejoin
class Delivery {
 public:
  Delivery(Session* session, RetryPolicy* retry_policy, const WorkerContext& context)
      : Delivery(session, session->connection(), retry_policy, context) {}
  /// Over this connection, which retries with `retry_policy`: for a thread beside the training thread.
  Delivery(Session* session, CoordinatorConnection* connection, RetryPolicy* retry_policy,
           const WorkerContext& context)
      : session_(session), connection_(connection), retry_policy_(retry_policy), context_(context) {}

  absl::StatusOr<DeliveryReport> Deliver(const PushHeader& header, std::span<const std::byte> payload);
  /// For one that an earlier life of this worker may have sent: asks what became of it first.
  absl::StatusOr<DeliveryReport> Resume(const PushHeader& header, std::span<const std::byte> payload);
  /// For one of an earlier incarnation whose bytes the run no longer takes: asks what became of it and sends
  /// nothing. What the coordinator does not have is lost: an upload of an earlier incarnation is never
  /// accepted.
  absl::StatusOr<DeliveryReport> Conclude(const PushHeader& header);

 private:
  enum class Begin : uint8_t { kBySending, kByAsking, kNever };
  absl::StatusOr<DeliveryReport> Timed(const PushHeader& header, std::span<const std::byte> payload,
                                       Begin begin);
  absl::StatusOr<DeliveryReport> RetryLoop(PushHeader header, std::span<const std::byte> payload,
                                           Begin begin);
  /// Whether it may be the loss alone that the coordinator rejects: earlier coordinators take only what a
  /// language model may have. `header` is without it from then on.
  bool RejectedForLoss(const absl::Status& rejection, PushHeader& header) const;
  /// Of a rejection as UNKNOWN_BASE: the rejection itself if the coordinator's head is below the base, and
  /// otherwise Unavailable, because what it rejected is not what was sent. Payloads have a checksum, headers
  /// have none. A worker that gave up would wait for the next version, and its round for the worker.
  absl::StatusOr<absl::Status> IfDamaged(const absl::Status& rejection, const PushHeader& header);
  /// Tells the coordinator of a push whose round closed without it, as a direct refusal would have: the
  /// samples that it was trained on are in the residual, and are not due again. Returns what became of it.
  DeliveryReport Claim(const PushHeader& header, std::span<const std::byte> payload,
                       const DeliveryReport& missed);
  absl::StatusOr<DeliveryReport> AskForVerdict(const PushHeader& header);
  absl::StatusOr<PushStatusReply> AskForStatus(const PushHeader& header);
  /// A verdict, or none and where to send from.
  absl::StatusOr<std::optional<DeliveryReport>> Ask(const PushHeader& header, uint64_t payload_bytes,
                                                    uint64_t* from);
  absl::Status Overcome(const absl::Status& failure, const PushHeader& header, const MemberRef& used);

  Session* const session_;
  CoordinatorConnection* const connection_;
  RetryPolicy* const retry_policy_;
  const WorkerContext context_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_DELIVERY_H_
