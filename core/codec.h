#ifndef ATOLL_CORE_CODEC_H_
#define ATOLL_CORE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "core/run_options.h"

namespace atl {

class SparseCodec;

/// Cut at multiples of so many values, a vector is encoded piece by piece: its payload is the payloads of the
/// pieces, one after the other, and EncodedSize(first) is where the piece from value `first` on begins.
inline constexpr uint64_t kPayloadPiece = 65536;

/// How a vector of float32 values travels. Grammar, constants and example bytes of every codec:
/// docs/reference/codecs.md.
///
/// Stateless, immutable, thread-safe; one instance per kind lives for the whole program. What a codec loses
/// is carried by ErrorFeedback, not here. All payload integers and floats are little-endian. The same input
/// gives the same bytes on every machine and instruction set.
///
/// A payload encodes a whole vector of `elements` values, which the caller knows (it is not in the payload).
/// Values stand in blocks of block_elements(); a range is addressed by a first element that is a multiple of
/// it, so that ranges can be decoded by different threads. A sparse codec decodes absent values to zero.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecKind kind() const = 0;

  /// This codec when values may be absent from its payloads (core/sparse_codec.h), else null.
  virtual const SparseCodec* sparse() const { return nullptr; }

  /// Values per block; divides kChunkAlignment (4096).
  virtual uint64_t block_elements() const = 0;

  /// Exact size in bytes of the payload of `elements` values.
  virtual uint64_t EncodedSize(uint64_t elements) const = 0;

  /// Writes `in` to `out`, which has EncodedSize(in.size()) bytes. A value that is not finite is kept so (or
  /// makes the block's scale not finite), so that Validate or PayloadNorm refuses the payload: it is never
  /// turned into a number.
  virtual void Encode(std::span<const float> in, std::span<std::byte> out) const = 0;

  /// Whether a foreign payload may be decoded: its size and structure. InvalidArgument says what is wrong and
  /// where. It does not look at every value: PayloadNorm finds those that are not finite.
  virtual absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const = 0;

  /// Decodes values [first, first + out.size()) of a validated payload. Requires first % block_elements() ==
  /// 0 and first + out.size() <= elements; out.size() is free.
  virtual void DecodeRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                           std::span<float> out) const = 0;

  /// acc[i] += weight * decoded[first + i], one rounded multiplication and one rounded addition (never
  /// fused). The bits are those of DecodeRange followed by that loop; a sparse codec may leave the values it
  /// does not hold untouched.
  virtual void AccumulateRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                               float weight, std::span<float> acc) const = 0;
};

/// All there are, by number.
inline constexpr CodecKind kCodecKinds[] = {
    CodecKind::kFp32,    CodecKind::kFp16,       CodecKind::kBf16,         CodecKind::kInt8,
    CodecKind::kInt4,    CodecKind::kE3m0,       CodecKind::kInt8Quantile, CodecKind::kTopK64,
    CodecKind::kTopK128, CodecKind::kTopK64Bf16, CodecKind::kTopK128Bf16};

/// The codec of this kind, or null when there is none (a number from a foreign peer or an old record).
const Codec* FindCodec(CodecKind kind);

/// The codec of a kind that is known to exist.
const Codec& CodecFor(CodecKind kind);

/// Its name as the configuration spells it ("fp32"); "unknown" for a kind that does not exist.
std::string_view CodecName(CodecKind kind);

}  // namespace atl

#endif  // ATOLL_CORE_CODEC_H_
