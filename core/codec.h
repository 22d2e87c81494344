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

/// A vector may be encoded in pieces that start at multiples of this many values. Its payload is then the
/// payloads of the pieces, one after the other, and the piece from value `first` on starts at
/// EncodedSize(first).
inline constexpr uint64_t kPayloadPiece = 65536;

/// An encoding of a vector of float32 values. docs/reference/codecs.md has the grammar, constants and example
/// bytes of every codec.
///
/// Stateless, immutable, thread-safe; one instance per kind lives for the whole program. ErrorFeedback
/// carries the encoding error; a codec does not. All payload integers and floats are little-endian. The same
/// input gives the same bytes on every machine and instruction set.
///
/// A payload encodes a whole vector of `elements` values, which the caller knows (it is not in the payload).
/// Values are in blocks of block_elements(). A range starts at a multiple of it, so that different threads
/// can decode different ranges. A sparse codec decodes absent values to zero.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecKind kind() const = 0;

  /// This codec as a sparse codec if its payloads may omit values (core/sparse_codec.h), else null.
  virtual const SparseCodec* sparse() const { return nullptr; }

  /// Values per block; divides kChunkAlignment (4096).
  virtual uint64_t block_elements() const = 0;

  /// Exact size in bytes of the payload of `elements` values.
  virtual uint64_t EncodedSize(uint64_t elements) const = 0;

  /// Writes `in` to `out`, which has EncodedSize(in.size()) bytes. A value that is not finite stays so (or
  /// makes the block's scale not finite), so that Validate or PayloadNorm rejects the payload. It never
  /// becomes a finite number.
  virtual void Encode(std::span<const float> in, std::span<std::byte> out) const = 0;

  /// Checks the size and structure of a foreign payload before decoding. InvalidArgument describes the
  /// problem and its place. Does not check every value: PayloadNorm finds values that are not finite.
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

/// All codecs, by number.
inline constexpr CodecKind kCodecKinds[] = {
    CodecKind::kFp32,    CodecKind::kFp16,       CodecKind::kBf16,         CodecKind::kInt8,
    CodecKind::kInt4,    CodecKind::kE3m0,       CodecKind::kInt8Quantile, CodecKind::kTopK64,
    CodecKind::kTopK128, CodecKind::kTopK64Bf16, CodecKind::kTopK128Bf16};

/// The codec of this kind; null for an unknown number (from a foreign peer or an old record).
const Codec* FindCodec(CodecKind kind);

/// The codec of a kind that is known to exist.
const Codec& CodecFor(CodecKind kind);

/// Its name in the configuration ("fp32"); "unknown" for an unknown kind.
std::string_view CodecName(CodecKind kind);

}  // namespace atl

#endif  // ATOLL_CORE_CODEC_H_
