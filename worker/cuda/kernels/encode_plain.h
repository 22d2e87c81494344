#ifndef ATOLL_WORKER_CUDA_KERNELS_ENCODE_PLAIN_H_
#define ATOLL_WORKER_CUDA_KERNELS_ENCODE_PLAIN_H_

#include <cstdint>

#include "core/codec_format.h"
#include "core/float_bits.h"
#include "worker/cuda/device.h"
#include "worker/cuda/kernels/push.h"
#include "worker/cuda/kernels/square_sum.h"

namespace atl::device {

// fp32, fp16 and bf16: one code per value. A format has
//
//   using Code;                            // of one value, as it is in the payload
//   using FourCodes;                       // moved in one access
//   static Code Encode(float value); static float Decode(Code code);

struct Fp32Code {
  static constexpr CodecKind kKind = CodecKind::kFp32;
  using Code = float;
  using FourCodes = Four;
  ATOLL_DEVICE static Code Encode(float value) { return value; }
  ATOLL_DEVICE static float Decode(Code code) { return code; }
  ATOLL_DEVICE static Four Join(const Code* codes) { return {codes[0], codes[1], codes[2], codes[3]}; }
  ATOLL_DEVICE static Code Split(const Four& codes, uint32_t k) { return codes.at[k]; }
};

template <CodecKind kCodec>
struct HalfCode {
  static constexpr CodecKind kKind = kCodec;
  static constexpr bool kBrief = kCodec == CodecKind::kBf16;
  using Code = uint16_t;
  using FourCodes = TwoWords;
  ATOLL_DEVICE static Code Encode(float value) {
    return kBrief ? Bf16FromFloat(value) : Fp16FromFloat(value);
  }
  ATOLL_DEVICE static float Decode(Code code) { return kBrief ? FloatFromBf16(code) : FloatFromFp16(code); }
  ATOLL_DEVICE static TwoWords Join(const Code* codes) {
    return {codes[0] | uint32_t{codes[1]} << 16, codes[2] | uint32_t{codes[3]} << 16};
  }
  ATOLL_DEVICE static Code Split(const TwoWords& codes, uint32_t k) {
    return static_cast<Code>(codes.at[k / 2] >> (k % 2 * 16));
  }
};
using Fp16Code = HalfCode<CodecKind::kFp16>;
using Bf16Code = HalfCode<CodecKind::kBf16>;

template <typename Format, Feedback kFeedback>
struct EncodePlain {
  static constexpr const char* kName = "encode_plain";
  using Arguments = PushArguments;
  using Code = typename Format::Code;

  ATOLL_DEVICE static void Run(const PushArguments& in) {
    ATOLL_SHARED(ChunkValues, sent);
    const ChunkRange chunk = ChunkOf(in.elements);
    for (uint32_t at = 4 * ThreadIndex(); at < chunk.count; at += 4 * BlockThreads()) {
      if (at + 4 <= chunk.count) {
        EncodeFour(in, chunk.first + at, at, sent);
      } else {
        for (uint32_t i = at; i < chunk.count; ++i) EncodeOne(in, chunk.first + i, i, sent);
      }
    }
    Barrier();
    StoreSquares(sent, chunk.count, in);
  }

 private:
  ATOLL_DEVICE static void EncodeFour(const PushArguments& in, uint64_t index, uint32_t at,
                                      ChunkValues& sent) {
    Whole wholes[4];
    LoadFourWholes(in, index, wholes);
    Code codes[4];
    float values[4];
    ATOLL_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      codes[k] = Format::Encode(wholes[k].value);
      values[k] = Format::Decode(codes[k]);
    }
    in.payload.StoreAs(index * sizeof(Code), Format::Join(codes));
    StoreFourNext<kFeedback>(in, index, wholes, values);
    sent.template StoreAs<Four>(at, Four{values[0], values[1], values[2], values[3]});
  }

  ATOLL_DEVICE static void EncodeOne(const PushArguments& in, uint64_t index, uint32_t at,
                                     ChunkValues& sent) {
    const Whole whole = LoadWhole(in, index);
    const Code code = Format::Encode(whole.value);
    const float value = Format::Decode(code);
    in.payload.StoreAs(index * sizeof(Code), code);
    in.next.Store(index, NextResidual<kFeedback>(in, whole, value));
    sent.Store(at, value);
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_ENCODE_PLAIN_H_
