#include "core/codec.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "core/codecs.h"
#include "core/fragment_plan.h"

namespace atoll {

void Codec::AccumulateRange(std::span<const std::byte> payload, uint64_t elements, uint64_t first,
                            float weight, std::span<float> acc) const {
  std::array<float, kChunkAlignment> decoded;
  // A small step keeps `decoded` and the accumulator in the L1 cache together.
  const uint64_t step = std::max<uint64_t>(block_elements(), 1024);
  for (uint64_t done = 0; done < acc.size(); done += step) {
    const std::span<float> target = acc.subspan(done, std::min<uint64_t>(step, acc.size() - done));
    DecodeRange(payload, elements, first + done, std::span(decoded).first(target.size()));
    for (size_t i = 0; i < target.size(); ++i) target[i] += weight * decoded[i];
  }
}

const Codec* FindCodec(CodecKind kind) {
  switch (kind) {
    case CodecKind::kFp32:
      return &Fp32Codec();
    case CodecKind::kFp16:
      return &Fp16Codec();
    case CodecKind::kBf16:
      return &Bf16Codec();
    case CodecKind::kInt8:
      return &Int8Codec();
    case CodecKind::kInt4:
      return &Int4Codec();
    case CodecKind::kE3m0:
      return &E3m0Codec();
  }
  return nullptr;
}

const Codec& CodecFor(CodecKind kind) {
  const Codec* codec = FindCodec(kind);
  return codec != nullptr ? *codec : Fp32Codec();
}

std::string_view CodecName(CodecKind kind) {
  switch (kind) {
    case CodecKind::kFp32:
      return "fp32";
    case CodecKind::kFp16:
      return "fp16";
    case CodecKind::kBf16:
      return "bf16";
    case CodecKind::kInt8:
      return "int8";
    case CodecKind::kInt4:
      return "int4";
    case CodecKind::kE3m0:
      return "e3m0";
  }
  return "unknown";
}

absl::Status CheckPayloadSize(const Codec& codec, std::span<const std::byte> payload, uint64_t elements) {
  const uint64_t expected = codec.EncodedSize(elements);
  if (payload.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s payload has %d bytes, but %d values take %d; encode the whole fragment, padding included",
      std::string(CodecName(codec.kind())), payload.size(), elements, expected));
}

}  // namespace atoll
