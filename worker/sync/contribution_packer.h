#ifndef ATOLL_WORKER_SYNC_CONTRIBUTION_PACKER_H_
#define ATOLL_WORKER_SYNC_CONTRIBUTION_PACKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"
#include "core/error_feedback.h"
#include "worker/sync/connection.h"
#include "worker/sync/delivery.h"
#include "worker/sync/inner_round.h"
#include "worker/sync/parameter_follower.h"
#include "worker/sync/replica.h"

namespace atoll {

/// One fragment's pseudo-gradients on their way out: base - local plus what earlier encodings lost, encoded.
/// Not thread-safe. Memory: 4 bytes per parameter of residual, and the payload.
class ContributionPacker {
 public:
  /// `run` gives codec and error feedback. Without error feedback, what a refused push carried is lost.
  ContributionPacker(const RunOptions& run, uint64_t elements);

  /// Encodes base - local and fills the offer. `scratch` is room for one fragment and is overwritten. From
  /// now on the payload stays as it is until the next Pack, so every attempt sends the same bytes.
  /// InvalidArgument naming the element when the pseudo-gradient is not finite; the residual is then empty.
  absl::Status Pack(const FragmentBase& base, const InnerRound& round, Replica& replica,
                    std::vector<float>& scratch);

  const PushOffer& offer() const { return offer_; }
  std::span<const std::byte> payload() const { return payload_; }

  /// The verdict on what was packed: what will never count goes back to the residual (or is forgotten when it
  /// is worthless).
  void Settle(Verdict verdict);

  /// A contribution on this base was accepted, by this process or an earlier one: none may follow.
  void MarkDone(Version base) { done_ = base; }
  bool IsDone(Version base) const { return done_ == base; }

  std::span<const float> residual() const { return feedback_.residual(); }

 private:
  const CodecKind codec_;
  ErrorFeedback feedback_;
  std::vector<std::byte> payload_;
  PushOffer offer_;
  std::optional<Version> done_;
};

}  // namespace atoll

#endif  // ATOLL_WORKER_SYNC_CONTRIBUTION_PACKER_H_
