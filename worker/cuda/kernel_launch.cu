#include "worker/cuda/kernel_launch.h"

#include <cuda_runtime.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "worker/cuda/kernels/all.h"

namespace atl {
namespace {

using device::kBlockThreads;
using device::kChunk;

template <typename Kernel>
__global__ void __launch_bounds__(kBlockThreads) Launched(const typename Kernel::Arguments arguments) {
  Kernel::Run(arguments);
}

__global__ void SetFirstBad(unsigned long long* first_bad, uint64_t elements) { *first_bad = elements; }

uint64_t ChunksOf(uint64_t elements) { return (elements + kChunk - 1) / kChunk; }

absl::Status Queued(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("kernel ", kernel, " cannot be launched: ",
                                          cudaGetErrorString(error), "; check the driver with nvidia-smi"));
}

template <typename Kernel>
absl::Status Queue(const typename Kernel::Arguments& arguments, void* stream) {
  if (arguments.elements == 0) return absl::OkStatus();
  Launched<Kernel><<<static_cast<uint32_t>(ChunksOf(arguments.elements)), kBlockThreads, 0,
                     static_cast<cudaStream_t>(stream)>>>(arguments);
  return Queued(Kernel::kName);
}

absl::Status NoKernels() {
  return absl::UnimplementedError("the codec int8_quantile has no kernels; encode on the processor");
}

}  // namespace

bool HasKernels(CodecKind codec) { return codec != CodecKind::kInt8Quantile; }

absl::Status QueuePush(CodecKind codec, const DevicePush& push, void* stream) {
  SetFirstBad<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(push.first_bad, push.elements);
  if (absl::Status status = Queued("set_first_bad"); !status.ok()) return status;
  const uint64_t chunks = ChunksOf(push.elements);
  device::PushArguments arguments;
  arguments.base = {push.base, push.elements};
  arguments.local = {push.local, push.elements};
  arguments.residual = {push.residual, push.elements};
  arguments.next = {push.next, push.elements};
  arguments.payload = {push.payload, CodecFor(codec).EncodedSize(push.elements)};
  arguments.squares = {push.squares, chunks};
  arguments.first_bad = {push.first_bad, 1};
  arguments.elements = push.elements;
  arguments.beta = push.beta;
  arguments.rest = 1.0f - push.beta;
  arguments.kept = push.form == ErrorFeedbackForm::kCarry ? push.beta : 1.0f;
  absl::Status status = NoKernels();
  device::VisitKernels(codec, [&]<typename Kernels>() {
    if (push.form == ErrorFeedbackForm::kCarry) {
      status = Queue<typename Kernels::template Encode<device::Feedback::kCarry>>(arguments, stream);
    } else {
      status = Queue<typename Kernels::template Encode<device::Feedback::kMovingAverage>>(arguments, stream);
    }
  });
  return status;
}

absl::Status QueueAdd(CodecKind codec, const uint8_t* payload, uint64_t elements, float* values,
                      void* stream) {
  device::PullArguments arguments;
  arguments.payload = {payload, CodecFor(codec).EncodedSize(elements)};
  arguments.values = {values, elements};
  arguments.elements = elements;
  absl::Status status = NoKernels();
  device::VisitKernels(codec,
                       [&]<typename Kernels>() { status = Queue<typename Kernels::Add>(arguments, stream); });
  return status;
}

}  // namespace atl
