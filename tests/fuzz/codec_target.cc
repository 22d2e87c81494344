#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/codec.h"
#include "core/delta.h"
#include "core/payload_stats.h"
#include "core/sparse_codec.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

// The bits: a NaN is not equal to itself.
bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

struct Payload {
  const Codec* codec;
  uint64_t elements;
  std::vector<std::byte> bytes;
};

/// kind:u8 fit:u8 elements:u16, then the payload. An odd `fit` makes it as long as it must be.
Payload TakePayload(FuzzInput& in) {
  const CodecKind kind = kCodecKinds[in.Byte() % std::size(kCodecKinds)];
  const bool fit = in.Byte() % 2 == 1;
  Payload payload{.codec = &CodecFor(kind), .elements = in.Number(2), .bytes = {}};
  const std::span<const std::byte> rest = in.Rest();
  payload.bytes.assign(rest.begin(), rest.end());
  if (fit) payload.bytes.resize(payload.codec->EncodedSize(payload.elements));
  payload.bytes.shrink_to_fit();
  return payload;
}

void CheckHeldValues(const SparseCodec& codec, const Payload& payload, const std::vector<float>& decoded) {
  HeldValues held;
  for (uint64_t first = 0; first < payload.elements; first += SparseCodec::kBlock) {
    codec.ReadBlock(payload.bytes, payload.elements, first, held);
    ATOLL_FUZZ_REQUIRE(held.count <= HeldValues::kMost);
    for (size_t i = 0; i < held.count; ++i) {
      const uint64_t at = first + held.positions[i];
      ATOLL_FUZZ_REQUIRE(at < payload.elements);
      ATOLL_FUZZ_REQUIRE(i == 0 || held.positions[i - 1] < held.positions[i]);
      ATOLL_FUZZ_REQUIRE(SameBits(decoded[at], held.values[i]));
    }
  }
}

}  // namespace

void FuzzCodec(FuzzInput in) {
  const Payload payload = TakePayload(in);
  const Codec& codec = *payload.codec;
  if (!codec.Validate(payload.bytes, payload.elements).ok()) return;
  ATOLL_FUZZ_REQUIRE(payload.bytes.size() == codec.EncodedSize(payload.elements));

  std::vector<float> whole(payload.elements);
  codec.DecodeRange(payload.bytes, payload.elements, 0, whole);
  const auto norm = PayloadNorm(codec, payload.bytes, payload.elements);
  const auto infinite = FirstNonFinite(whole);
  ATOLL_FUZZ_REQUIRE(norm.ok() == !infinite.has_value());
  if (const SparseCodec* sparse = codec.sparse()) CheckHeldValues(*sparse, payload, whole);

  // In pieces, as threads do it, and accumulated.
  const uint64_t step = codec.block_elements() * 3;
  for (uint64_t first = 0; first < payload.elements; first += step) {
    std::vector<float> piece(std::min<uint64_t>(step, payload.elements - first));
    codec.DecodeRange(payload.bytes, payload.elements, first, piece);
    std::vector<float> sum(piece.size(), 1.0F);
    codec.AccumulateRange(payload.bytes, payload.elements, first, 0.5F, sum);
    for (size_t i = 0; i < piece.size(); ++i) {
      ATOLL_FUZZ_REQUIRE(SameBits(piece[i], whole[first + i]));
      if (!infinite) ATOLL_FUZZ_REQUIRE(sum[i] == 1.0F + 0.5F * piece[i]);
    }
  }
  if (infinite) return;
  std::vector<std::byte> again(payload.bytes.size());
  codec.Encode(whole, again);
  ATOLL_FUZZ_REQUIRE(codec.Validate(again, payload.elements).ok());
}

// As FuzzCodec's: a difference that a coordinator sends.
void FuzzDelta(FuzzInput in) {
  const Payload payload = TakePayload(in);
  if (!payload.codec->Validate(payload.bytes, payload.elements).ok()) return;
  std::vector<float> values(payload.elements, 0.25F);
  ApplyDelta(*payload.codec, payload.bytes, values);
  std::vector<float> decoded(payload.elements);
  payload.codec->DecodeRange(payload.bytes, payload.elements, 0, decoded);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(decoded[i])) ATOLL_FUZZ_REQUIRE(values[i] == 0.25F + decoded[i]);
  }
}

}  // namespace atl::fuzz
