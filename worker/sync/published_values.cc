#include "worker/sync/published_values.h"

#include "common/content_hash.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/delta.h"

namespace atl {

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
