#include "client/sync/published_values.h"

#include "client/sync/rejection.h"
#include "common/content_hash.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/delta.h"

namespace atl {

PullRequest RequestFor(const FragmentLayout& fragment, const PullEncoding& encoding,
                       std::optional<Version> after, std::optional<Version> have, Duration wait) {
  PullRequest request{.call = {.fragment = fragment.id, .after = after, .wait = wait},
                      .elements = fragment.elements,
                      .codec = encoding.full};
  request.call.zstd = encoding.zstd;
  if (encoding.delta.has_value() && have.has_value()) {
    request.call.have = have;
    request.delta_codec = *encoding.delta;
  }
  return request;
}

absl::Status CheckEpoch(const PulledVersion& pulled, Epoch epoch) {
  if (pulled.epoch == epoch) return absl::OkStatus();
  return WithRejection(absl::AbortedError("the run was restored; its new epoch has to be joined"),
                       RejectionReason::kWrongEpoch);
}

absl::Status CheckNotBack(const PulledVersion& pulled, FragmentId fragment, Version held, const Logger& log) {
  if (pulled.version >= held) return absl::OkStatus();
  const absl::Status back = WentBack(fragment, held, pulled.version);
  log.Error("versions are lost; this worker goes on from an older one", {{"why", Explain(back)}});
  return back;
}

ContentHash HashPublished(std::span<const float> values, CodecKind pull, std::vector<std::byte>& scratch) {
  Hash128 hash;
  if (pull == CodecKind::kFp32) {
    hash = HashBytes(std::as_bytes(values));
  } else {
    scratch.resize(CodecFor(pull).EncodedSize(values.size()));
    CodecFor(pull).Encode(values, scratch);
    hash = HashBytes(scratch);
  }
  return {.low = hash.low, .high = hash.high};
}

absl::StatusOr<Landing> Land(const PullRequest& request, const PulledVersion& pulled,
                             std::span<const std::byte> payload, std::span<float> values) {
  const bool whole = !pulled.delta_base.has_value();
  const Codec& codec = CodecFor(whole ? request.codec : request.delta_codec);
  const std::span<const std::byte> came = payload.first(codec.EncodedSize(values.size()));
  ATOLL_RETURN_IF_ERROR(codec.Validate(came, values.size()));
  if (whole) {
    codec.DecodeRange(came, values.size(), 0, values);
    return Landing::kThere;
  }
  ApplyDelta(codec, came, values);
  const Hash128 hash = HashBytes(std::as_bytes(values));
  if (pulled.published != ContentHash{.low = hash.low, .high = hash.high}) return Landing::kAstray;
  return pulled.version == pulled.head ? Landing::kThere : Landing::kOneStep;
}

}  // namespace atl
