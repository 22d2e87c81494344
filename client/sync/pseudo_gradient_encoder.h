#ifndef ATOLL_CLIENT_SYNC_PSEUDO_GRADIENT_ENCODER_H_
#define ATOLL_CLIENT_SYNC_PSEUDO_GRADIENT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/sync/connection.h"
#include "client/sync/delivery.h"
#include "client/sync/fragment_encoder.h"
#include "client/sync/inner_round.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/replica.h"
#include "client/sync/worker_checkpoint.h"
#include "common/ids.h"
#include "core/privacy.h"

namespace atl {

/// Describes the contribution of `round` to the coordinator. Codec and checksum are filled in when it is
/// encoded.
PushHeader ClaimsOf(const FragmentBase& base, const InnerRound& round, std::optional<uint32_t> partition,
                    uint64_t samples_consumed);

/// One fragment's contributions on their way out: the pseudo-gradient plus what earlier encodings lost,
/// encoded by the replica's FragmentEncoder, and the book about them: header, payload, bases that are done.
/// Not thread-safe. Memory: that of the FragmentEncoder, and the payload.
class PseudoGradientEncoder {
 public:
  /// `run` gives codec, error feedback and privacy; its residual is reset when a multiple of
  /// run.error_feedback_reset versions lies between two bases. Without error feedback, what a refused push
  /// carried is lost.
  ///
  /// With privacy a pseudo-gradient is clipped and gets its noise before anything else is made of it. Payload
  /// and residual are functions of the result and of earlier results, so neither they nor what is made of
  /// them later tells more (post-processing); the loss of the round is not told.
  PseudoGradientEncoder(const RunOptions& run, const FragmentLayout& layout, Replica& replica);
  /// On the host, with this source of noise.
  PseudoGradientEncoder(const RunOptions& run, uint64_t elements, std::shared_ptr<GaussianSource> noise);
  PseudoGradientEncoder(const RunOptions& run, uint64_t elements);

  /// Encodes base - local and fills the offer. `scratch` is room for one fragment and is overwritten. From
  /// now on the payload stays as it is until the next Pack, so every attempt sends the same bytes.
  /// InvalidArgument naming the element when the pseudo-gradient is not finite; the residual is then empty.
  absl::Status EncodeRound(const FragmentBase& base, const InnerRound& round, Replica& replica,
                           std::optional<uint32_t> partition, std::vector<float>& scratch);

  /// See FragmentEncoder::BeginSteps.
  void BeginSteps(const FragmentLayout& fragment, bool from_base) {
    arithmetic_->BeginSteps(fragment, from_base);
  }

  /// In two steps: takes the pseudo-gradient as it is now (FragmentEncoder::Measure) ...
  absl::Status Measure(const FragmentBase& base, Replica& replica, std::span<float> delta);
  /// ... and encodes it, maybe on another thread: `claims` says what it is of; codec, packing and checksum
  /// are filled in here. With privacy `delta` is changed.
  absl::Status Encode(const PushHeader& claims, std::span<float> delta);

  /// Whether the run still takes payloads of this codec: only those can be sent.
  bool Sends(CodecKind codec) const { return codec == codec_; }

  /// Puts back what an earlier life of the worker packed last; Settle follows. When the run's codec has
  /// changed since, the content of a settled one becomes residual, and `kept` then has the verdict that is
  /// left: there is nothing to give back. InvalidArgument, and nothing changes, when it does not fit the
  /// fragment's size, or an unsettled one this run's codec (see Delivery::Conclude).
  absl::Status Restore(PushRecord& kept);

  const PushHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }

  /// The verdict on what was packed: what will never count goes back to the residual (or is forgotten when it
  /// is worthless).
  void Settle(Verdict verdict);

  /// A contribution on this base was accepted, by this process or an earlier one: none may follow.
  void MarkDone(Version base) { done_ = base; }
  bool IsDone(Version base) const { return done_ == base; }
  /// One was refused in an earlier life, but the round on its base may have been opened again since, as when
  /// a finished run is extended. If it was not, the coordinator refuses the next one as well.
  void MayFollow() { done_.reset(); }

  std::span<const float> residual() const { return arithmetic_->residual(); }
  /// The residual is as it was after the last Pack, whatever becomes of it: nobody can tell any more.
  void Forget() { done_ = header_.key.base; }

 private:
  PseudoGradientEncoder(const RunOptions& run, uint64_t elements,
                        std::unique_ptr<FragmentEncoder> arithmetic);

  void Recode(PushRecord& kept) const;

  const CodecKind codec_;
  const bool zstd_;
  const uint32_t reset_every_;  // versions; 0: never
  const bool noisy_;
  std::unique_ptr<FragmentEncoder> arithmetic_;
  std::vector<std::byte> payload_;
  PushHeader header_;
  std::optional<Version> done_;
};

/// One for each fragment of the layout.
std::vector<PseudoGradientEncoder> MakeEncoders(const RunOptions& run,
                                                const std::vector<FragmentLayout>& layout, Replica& replica);

/// Marks the bases that the run has a contribution of this worker on, as a Join tells (JoinedRun::accepted).
void MarkAccepted(const std::vector<PushKey>& accepted, std::span<const FragmentBase> bases,
                  std::span<PseudoGradientEncoder> encoders);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_PSEUDO_GRADIENT_ENCODER_H_
