#include <cstring>

#include "common/instruction_set.h"
#include "core/codec_format.h"
#include "core/codecs.h"

namespace atl {
namespace {

struct Accumulate {
  ATOLL_KERNEL void Run(const std::byte* __restrict source, float weight, size_t n,
                        float* __restrict target) {
    for (size_t i = 0; i < n; ++i) {
      float value;  // the payload need not be aligned
      std::memcpy(&value, source + i * kFp32Bytes, kFp32Bytes);
      target[i] += weight * value;
    }
  }
};

class Fp32 final : public Codec {
 public:
  CodecKind kind() const override { return CodecKind::kFp32; }
  uint64_t block_elements() const override { return kPlainBlock; }
  uint64_t EncodedSize(uint64_t elements) const override { return elements * kFp32Bytes; }

  void Encode(std::span<const float> in, std::span<std::byte> out) const override {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size_bytes());
  }

  absl::Status Validate(std::span<const std::byte> payload, uint64_t elements) const override {
    return CheckPayloadSize(*this, payload, elements);
  }

  void DecodeRange(std::span<const std::byte> payload, uint64_t, uint64_t first,
                   std::span<float> out) const override {
    if (!out.empty()) std::memcpy(out.data(), payload.data() + first * kFp32Bytes, out.size_bytes());
  }

  void AccumulateRange(std::span<const std::byte> payload, uint64_t, uint64_t first, float weight,
                       std::span<float> acc) const override {
    RunKernel<Accumulate>(payload.data() + first * kFp32Bytes, weight, acc.size(), acc.data());
  }
};

}  // namespace

const Codec& Fp32Codec() {
  static const Fp32 codec;
  return codec;
}

}  // namespace atl
