#ifndef ATOLL_WORKER_CUDA_DEVICE_PUSH_H_
#define ATOLL_WORKER_CUDA_DEVICE_PUSH_H_

#include <cstdint>

#include "core/run_options.h"

namespace atl {

/// A push of one fragment in the memory of a device (PushArguments in worker/cuda/kernels/push.h has the
/// contract).
struct DevicePush {
  const float* base = nullptr;
  const float* local = nullptr;
  const float* residual = nullptr;
  float* next = nullptr;  // the residual after the push; another allocation than `residual`
  uint8_t* payload = nullptr;
  double* squares = nullptr;  // of each chunk of 4096 values
  unsigned long long* first_bad = nullptr;
  uint64_t elements = 0;
  float beta = 0;
  ErrorFeedbackForm form = ErrorFeedbackForm::kCarry;
};

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_DEVICE_PUSH_H_
