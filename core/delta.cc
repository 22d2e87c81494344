#include "core/delta.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_format.h"
#include "core/fragment_plan.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

/// to = from + decoded values [first, first + to.size()); a block at a time, in the cache.
void Add(const Codec& codec, std::span<const std::byte> payload, uint64_t elements,
         std::span<const float> from, std::span<float> to) {
  std::array<float, kChunkAlignment> decoded;
  for (uint64_t done = 0; done < elements; done += kChunkAlignment) {
    const uint64_t n = std::min<uint64_t>(kChunkAlignment, elements - done);
    codec.DecodeRange(payload, elements, done, std::span(decoded).first(n));
    for (uint64_t i = 0; i < n; ++i) to[done + i] = from[done + i] + decoded[i];
  }
}

}  // namespace

absl::Status EncodeDelta(const Codec& codec, std::span<const float> theta, std::span<const float> from,
                         uint64_t first, std::span<std::byte> payload, std::span<float> to) {
  // `to` holds the difference until it is encoded: no memory besides.
  for (size_t i = 0; i < to.size(); ++i) to[i] = theta[i] - from[i];
  codec.Encode(to, payload);
  Add(codec, payload, to.size(), from, to);
  const std::optional<uint64_t> bad = FirstNonFinite(to);
  if (!bad) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the published value of element %d would not be finite (%g): the outer step is too large for float32, "
      "lower the outer learning rate",
      first + *bad, to[*bad]));
}

void ApplyDelta(const Codec& codec, std::span<const std::byte> payload, std::span<float> values) {
  Add(codec, payload, values.size(), values, values);
}

}  // namespace atl
