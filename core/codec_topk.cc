#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"
#include "core/position_coding.h"
#include "core/sparse_codec.h"
#include "core/topk_format.h"
#include "core/topk_select.h"

namespace atl {
namespace {

/// Two bits per value: a sign and one of two levels of the block.
struct TwoBits {
  static constexpr size_t Bytes(uint32_t held) { return TwoBitBytes(held); }

  static void Encode(const float* values, uint32_t held, std::byte* out);
  static void Decode(const std::byte* in, uint32_t held, float* values);
  static const char* Check(const std::byte* in, uint32_t held);
};

/// Where the magnitudes part into a lower and an upper group, and each group's mean.
struct Split {
  double at = 0;
  double low = 0;
  double high = 0;

  /// The means of the groups below and from `at` on; of an empty one 0.
  void TakeMeans(std::span<const float> magnitudes) {
    double sums[2] = {};
    uint32_t counts[2] = {};
    for (const float magnitude : magnitudes) {
      const size_t upper = static_cast<double>(magnitude) >= at ? 1 : 0;
      sums[upper] += static_cast<double>(magnitude);
      ++counts[upper];
    }
    low = counts[0] > 0 ? sums[0] / counts[0] : 0;
    high = counts[1] > 0 ? sums[1] / counts[1] : 0;
  }
};

/// Two means by Lloyd's algorithm from the mean on, a fixed number of rounds. When there are zeros among the
/// values, one of the levels is theirs, so that they stay zeros.
Split SplitOf(std::span<const float> magnitudes) {
  Split split;
  if (std::ranges::find(magnitudes, 0.0f) != magnitudes.end()) {
    split.at = static_cast<double>(std::numeric_limits<float>::denorm_min());
    split.TakeMeans(magnitudes);
    return split;
  }
  double sum = 0;
  for (const float magnitude : magnitudes) sum += static_cast<double>(magnitude);
  split.at = sum / static_cast<double>(magnitudes.size());
  split.TakeMeans(magnitudes);
  for (int round = 0; round < kTopKLloydRounds; ++round) {
    split.at = (split.low + split.high) / 2;
    split.TakeMeans(magnitudes);
  }
  return split;
}

void TwoBits::Encode(const float* values, uint32_t held, std::byte* out) {
  std::array<float, HeldValues::kMost> buffer;
  bool finite = true;
  for (uint32_t i = 0; i < held; ++i) {
    finite = finite && IsFiniteBits(values[i]);
    buffer[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  }
  const std::span<const float> magnitudes(buffer.data(), held);
  std::memset(out, 0, Bytes(held));
  if (!finite) {
    constexpr float kNan[2] = {std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::quiet_NaN()};
    std::memcpy(out, kNan, kTopKLevelsBytes);
    return;
  }
  const Split split = SplitOf(magnitudes);
  const float levels[2] = {static_cast<float>(split.low), static_cast<float>(split.high)};
  std::memcpy(out, levels, kTopKLevelsBytes);
  for (uint32_t i = 0; i < held; ++i) {
    const uint32_t upper = static_cast<double>(magnitudes[i]) >= split.at ? kTopKUpperBit : 0;
    const uint32_t sign = values[i] < 0 ? kTopKSignBit : 0;
    out[kTopKLevelsBytes + i / 4] |= static_cast<std::byte>((upper | sign) << (i % 4 * 2));
  }
}

void TwoBits::Decode(const std::byte* in, uint32_t held, float* values) {
  float levels[2];
  std::memcpy(levels, in, kTopKLevelsBytes);
  const float table[4] = {levels[0], levels[1], -levels[0], -levels[1]};
  static_assert(kTopKUpperBit == 1 && kTopKSignBit == 2);
  for (uint32_t i = 0; i < held; ++i) {
    values[i] = table[std::to_integer<uint32_t>(in[kTopKLevelsBytes + i / 4]) >> (i % 4 * 2) & 3];
  }
}

const char* TwoBits::Check(const std::byte* in, uint32_t held) {
  std::array<uint32_t, 2> bits;
  std::memcpy(bits.data(), in, kTopKLevelsBytes);
  // The sign bit makes a large number.
  if (std::ranges::max(bits) >= static_cast<uint32_t>(kFloatInfinityBits)) {
    return "a level is not finite or is negative";
  }
  if (bits[0] > bits[1]) return "the lower level is above the upper one";
  if (held % 4 != 0 && std::to_integer<uint32_t>(in[Bytes(held) - 1]) >> (held % 4 * 2) != 0) {
    return "unused bits behind the values are set";
  }
  return nullptr;
}

/// Values as bf16.
struct Brief {
  static constexpr size_t Bytes(uint32_t held) { return BriefBytes(held); }

  static void Encode(const float* values, uint32_t held, std::byte* out) {
    for (uint32_t i = 0; i < held; ++i) {
      const uint16_t brief = Bf16FromFloat(values[i]);
      std::memcpy(out + i * kHalfBytes, &brief, kHalfBytes);
    }
  }

  static void Decode(const std::byte* in, uint32_t held, float* values) {
    for (uint32_t i = 0; i < held; ++i) {
      uint16_t brief;
      std::memcpy(&brief, in + i * kHalfBytes, kHalfBytes);
      values[i] = FloatFromBf16(brief);
    }
  }

  static const char* Check(const std::byte*, uint32_t) { return nullptr; }  // PayloadNorm sees every value
};

/// The kLargest largest of each 4096 values (SparseLoCo, arXiv 2508.15706).
template <CodecKind kKind, uint32_t kLargest, typename Values>
class TopK final : public SparseCodec {
 public:
  CodecKind kind() const override { return kKind; }

  uint64_t EncodedSize(uint64_t elements) const override {
    const uint64_t rest = elements % kBlock;
    return elements / kBlock * kBlockBytes + (rest > 0 ? BlockBytes(static_cast<uint32_t>(rest)) : 0);
  }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    std::byte* target = out.data();
    for (uint64_t first = 0; first < in.size(); first += kBlock, target += kBlockBytes) {
      EncodeBlock(in.subspan(first, std::min<uint64_t>(kBlock, in.size() - first)), target);
    }
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    ATOLL_RETURN_IF_ERROR(CheckPayloadSize(*this, payload, elements));
    const std::byte* block = payload.data();
    for (uint64_t first = 0; first < elements; first += kBlock, block += kBlockBytes) {
      const PositionCoding coding = CodingOf(SizeAt(first, elements));
      const char* problem = CheckPositions(coding, block);
      if (problem == nullptr) problem = Values::Check(block + coding.bytes(), coding.held);
      if (problem == nullptr) continue;
      return absl::InvalidArgumentError(absl::StrFormat("%s payload, block %d (values from %d on): %s",
                                                        std::string(CodecName(kKind)), first / kBlock, first,
                                                        problem));
    }
    return absl::OkStatus();
  }

  void ReadBlock(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                 HeldValues& held) const override {
    const PositionCoding coding = CodingOf(SizeAt(first, elements));
    const std::byte* block = payload.data() + first / kBlock * kBlockBytes;
    held.count = UnpackPositions(coding, block, held.positions.data());
    Values::Decode(block + coding.bytes(), coding.held, held.values.data());
  }

 private:
  static_assert(kLargest <= HeldValues::kMost && kBlock % kLargest == 0);

  static constexpr PositionCoding CodingOf(uint32_t values) { return TopKPositions(kLargest, values); }
  static constexpr size_t BlockBytes(uint32_t values) {
    const PositionCoding coding = CodingOf(values);
    return coding.bytes() + Values::Bytes(coding.held);
  }
  static constexpr size_t kBlockBytes = BlockBytes(kBlock);

  static uint32_t SizeAt(uint64_t first, uint64_t elements) {
    return static_cast<uint32_t>(std::min<uint64_t>(kBlock, elements - first));
  }

  static void EncodeBlock(std::span<const float> in, std::byte* out) {
    const PositionCoding coding = CodingOf(static_cast<uint32_t>(in.size()));
    std::array<uint16_t, HeldValues::kMost> positions;
    std::array<float, HeldValues::kMost> values;
    SelectLargest(in, std::span(positions).first(coding.held));
    for (uint32_t i = 0; i < coding.held; ++i) values[i] = in[positions[i]];
    PackPositions(coding, positions.data(), out);
    Values::Encode(values.data(), coding.held, out + coding.bytes());
  }
};

}  // namespace

const Codec& TopK64Codec() {
  static const TopK<CodecKind::kTopK64, 64, TwoBits> codec;
  return codec;
}

const Codec& TopK128Codec() {
  static const TopK<CodecKind::kTopK128, 128, TwoBits> codec;
  return codec;
}

const Codec& TopK64Bf16Codec() {
  static const TopK<CodecKind::kTopK64Bf16, 64, Brief> codec;
  return codec;
}

const Codec& TopK128Bf16Codec() {
  static const TopK<CodecKind::kTopK128Bf16, 128, Brief> codec;
  return codec;
}

}  // namespace atl
