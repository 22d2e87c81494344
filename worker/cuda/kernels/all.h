#ifndef ATOLL_WORKER_CUDA_KERNELS_ALL_H_
#define ATOLL_WORKER_CUDA_KERNELS_ALL_H_

#include "core/run_options.h"
#include "core/scaled_formats.h"
#include "worker/cuda/kernels/decode.h"
#include "worker/cuda/kernels/encode_plain.h"
#include "worker/cuda/kernels/encode_scaled.h"
#include "worker/cuda/kernels/encode_topk.h"

namespace atl::device {

/// The kernels of a codec.
template <CodecKind kCodec>
struct KernelsOf;

template <typename Format>
struct PlainKernels {
  template <Feedback kFeedback>
  using Encode = EncodePlain<Format, kFeedback>;
  using Add = AddPlain<Format>;
};
template <typename Format>
struct ScaledKernels {
  template <Feedback kFeedback>
  using Encode = EncodeScaled<Format, kFeedback>;
  using Add = AddScaledBlocks<Format>;
};
template <uint32_t kLargest, bool kTwoBits>
struct TopKKernels {
  template <Feedback kFeedback>
  using Encode = EncodeTopK<kLargest, kTwoBits, kFeedback>;
  using Add = AddTopK<kLargest, kTwoBits>;
};

template <>
struct KernelsOf<CodecKind::kFp32> : PlainKernels<Fp32Code> {};
template <>
struct KernelsOf<CodecKind::kFp16> : PlainKernels<Fp16Code> {};
template <>
struct KernelsOf<CodecKind::kBf16> : PlainKernels<Bf16Code> {};
template <>
struct KernelsOf<CodecKind::kInt8> : ScaledKernels<Int8Format> {};
template <>
struct KernelsOf<CodecKind::kInt4> : ScaledKernels<Int4Format> {};
template <>
struct KernelsOf<CodecKind::kE3m0> : ScaledKernels<E3m0Format> {};
template <>
struct KernelsOf<CodecKind::kTopK64> : TopKKernels<64, true> {};
template <>
struct KernelsOf<CodecKind::kTopK128> : TopKKernels<128, true> {};
template <>
struct KernelsOf<CodecKind::kTopK64Bf16> : TopKKernels<64, false> {};
template <>
struct KernelsOf<CodecKind::kTopK128Bf16> : TopKKernels<128, false> {};

/// Calls visit.template operator()<KernelsOf<kind>>() for a codec that has kernels. False for the others:
/// int8_quantile, whose codebook of 65536 values is made on the processor.
template <typename Visit>
bool VisitKernels(CodecKind kind, const Visit& visit) {
  switch (kind) {
    case CodecKind::kFp32:
      return visit.template operator()<KernelsOf<CodecKind::kFp32>>(), true;
    case CodecKind::kFp16:
      return visit.template operator()<KernelsOf<CodecKind::kFp16>>(), true;
    case CodecKind::kBf16:
      return visit.template operator()<KernelsOf<CodecKind::kBf16>>(), true;
    case CodecKind::kInt8:
      return visit.template operator()<KernelsOf<CodecKind::kInt8>>(), true;
    case CodecKind::kInt4:
      return visit.template operator()<KernelsOf<CodecKind::kInt4>>(), true;
    case CodecKind::kE3m0:
      return visit.template operator()<KernelsOf<CodecKind::kE3m0>>(), true;
    case CodecKind::kTopK64:
      return visit.template operator()<KernelsOf<CodecKind::kTopK64>>(), true;
    case CodecKind::kTopK128:
      return visit.template operator()<KernelsOf<CodecKind::kTopK128>>(), true;
    case CodecKind::kTopK64Bf16:
      return visit.template operator()<KernelsOf<CodecKind::kTopK64Bf16>>(), true;
    case CodecKind::kTopK128Bf16:
      return visit.template operator()<KernelsOf<CodecKind::kTopK128Bf16>>(), true;
    case CodecKind::kInt8Quantile:
      return false;
  }
  return false;
}

/// Threads of a block in a launch on a GPU.
inline constexpr uint32_t kBlockThreads = 256;

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_ALL_H_
