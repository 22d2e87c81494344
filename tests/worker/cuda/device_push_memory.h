#ifndef ATOLL_TESTS_WORKER_CUDA_DEVICE_PUSH_MEMORY_H_
#define ATOLL_TESTS_WORKER_CUDA_DEVICE_PUSH_MEMORY_H_

#include <cstdint>

#include "core/codec.h"
#include "core/fragment_plan.h"
#include "tests/worker/cuda/device_array.h"
#include "worker/cuda/device_push.h"

namespace atl::device {

/// What a push of so many elements reads and writes, on the GPU.
struct DevicePushMemory {
  DevicePushMemory(CodecKind codec, uint64_t elements)
      : base(elements),
        local(elements),
        residual(elements),
        next(elements),
        payload(CodecFor(codec).EncodedSize(elements)),
        squares((elements + kChunkAlignment - 1) / kChunkAlignment) {}

  DevicePush Push(double beta, ErrorFeedbackForm form) const {
    return {.base = base.data(),
            .local = local.data(),
            .residual = residual.data(),
            .next = next.data(),
            .payload = payload.data(),
            .squares = squares.data(),
            .first_bad = first_bad.data(),
            .elements = base.size(),
            .beta = static_cast<float>(beta),
            .form = form};
  }

  DeviceArray<float> base;
  DeviceArray<float> local;
  DeviceArray<float> residual;
  DeviceArray<float> next;
  DeviceArray<uint8_t> payload;
  DeviceArray<double> squares;
  DeviceArray<unsigned long long> first_bad{1};
};

}  // namespace atl::device

#endif  // ATOLL_TESTS_WORKER_CUDA_DEVICE_PUSH_MEMORY_H_
