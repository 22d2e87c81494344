#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "absl/strings/str_format.h"
#include "common/instruction_set.h"
#include "common/status.h"
#include "core/codebook_lookup.h"
#include "core/codec_format.h"
#include "core/codecs.h"
#include "core/float_bits.h"
#include "core/payload_stats.h"
#include "core/scaled_formats.h"

namespace atl {
namespace {

static_assert(std::tuple_size_v<Codebook> == kQuantileLevels);

struct Codes {
  ATOLL_KERNEL void Run(const float* __restrict in, float scale, size_t n, uint8_t* __restrict codes) {
    for (size_t i = 0; i < n; ++i) {
      const int32_t level = NearestLevel(in[i], scale, kQuantileZero) + static_cast<int32_t>(kQuantileZero);
      codes[i] = static_cast<uint8_t>(level < 256 ? level : 255);
    }
  }
};

/// The mean of each bin's values; of the middle one 0, so that zeros stay zeros.
Codebook Means(std::span<const float> in, const uint8_t* codes) {
  std::array<double, kQuantileLevels> sums{};
  std::array<uint32_t, kQuantileLevels> counts{};
  for (size_t i = 0; i < in.size(); ++i) {
    sums[codes[i]] += static_cast<double>(in[i]);
    ++counts[codes[i]];
  }
  Codebook means{};
  for (size_t bin = 0; bin < kQuantileLevels; ++bin) {
    if (counts[bin] > 0) means[bin] = static_cast<float>(sums[bin] / counts[bin]);
  }
  means[kQuantileZero] = 0;
  return means;
}

void EncodeSection(std::span<const float> in, std::byte* out) {
  auto* codes = reinterpret_cast<uint8_t*>(out + kQuantileCodebookBytes);
  const double norm = VectorNorm(in);
  const double rest = in.size() > 1 ? static_cast<double>(in.size() - 1) : 1.0;
  const auto scale = static_cast<float>(6 * (norm / std::sqrt(rest)) / kQuantileLevels);
  Codebook codebook{};
  if (scale > 0 && std::isfinite(norm)) {
    RunKernel<Codes>(in.data(), scale, in.size(), codes);
    codebook = Means(in, codes);
  } else {
    std::memset(codes, kQuantileZero, in.size());
    if (!std::isfinite(norm)) codebook.fill(std::numeric_limits<float>::quiet_NaN());
  }
  std::memcpy(out, codebook.data(), kQuantileCodebookBytes);
}

class Int8Quantile final : public Codec {
 public:
  CodecKind kind() const override { return CodecKind::kInt8Quantile; }
  uint64_t block_elements() const override { return kPlainBlock; }

  uint64_t EncodedSize(uint64_t elements) const override {
    return elements + (elements + kQuantileSection - 1) / kQuantileSection * kQuantileCodebookBytes;
  }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    for (uint64_t first = 0; first < in.size(); first += kQuantileSection) {
      EncodeSection(in.subspan(first, std::min<uint64_t>(kQuantileSection, in.size() - first)),
                    out.data() + SectionAt(first));
    }
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    ATOLL_RETURN_IF_ERROR(CheckPayloadSize(*this, payload, elements));
    for (uint64_t first = 0; first < elements; first += kQuantileSection) {
      ATOLL_RETURN_IF_ERROR(CheckCodebook(CodebookAt(payload, first), first));
    }
    return absl::OkStatus();
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t, uint64_t first,
                   std::span<float> out) const override {
    Read<false>(payload, first, 0, out);
  }

  void AccumulateRange(std::span<const std::byte> payload, uint64_t, uint64_t first, float weight,
                       std::span<float> acc) const override {
    Read<true>(payload, first, weight, acc);
  }

 private:
  static uint64_t SectionAt(uint64_t first) {
    return first / kQuantileSection * (kQuantileCodebookBytes + kQuantileSection);
  }

  static Codebook CodebookAt(std::span<const std::byte> payload, uint64_t first) {
    Codebook codebook;
    std::memcpy(codebook.data(), payload.data() + SectionAt(first), kQuantileCodebookBytes);
    return codebook;
  }

  static absl::Status CheckCodebook(const Codebook& codebook, uint64_t first) {
    if (std::bit_cast<uint32_t>(codebook[kQuantileZero]) != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "int8_quantile payload: code %d of the section from value %d on means %g; it must mean 0",
          kQuantileZero, first, codebook[kQuantileZero]));
    }
    if (const auto bad = FirstNonFinite(codebook)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "int8_quantile payload: code %d of the section from value %d on means %g; it must be finite", *bad,
          first, codebook[*bad]));
    }
    return absl::OkStatus();
  }

  template <bool kAdd>
  static void Read(std::span<const std::byte> payload, uint64_t first, float weight, std::span<float> out) {
    for (uint64_t done = 0; done < out.size();) {
      const uint64_t inside = (first + done) % kQuantileSection;
      const uint64_t n = std::min<uint64_t>(kQuantileSection - inside, out.size() - done);
      const Codebook codebook = CodebookAt(payload, first + done);
      const auto* codes = reinterpret_cast<const uint8_t*>(payload.data() + SectionAt(first + done) +
                                                           kQuantileCodebookBytes + inside);
      if constexpr (kAdd) {
        AddLookedUp(codebook, codes, weight, n, out.data() + done);
      } else {
        LookUpCodes(codebook, codes, n, out.data() + done);
      }
      done += n;
    }
  }
};

}  // namespace

const Codec& Int8QuantileCodec() {
  static const Int8Quantile codec;
  return codec;
}

}  // namespace atl
