#include <cstdint>
#include <cstdio>
#include <string>

#include "core/codec.h"
#include "tests/worker/cuda/device_array.h"
#include "worker/cuda/kernel_launch.h"

// Prints, in Markdown, the speed of each kernel on the GPU beside that of a copy within its memory.

namespace atl::device {
namespace {

constexpr uint64_t kElements = uint64_t{1} << 27;  // 512 MiB a vector: no cache holds it
constexpr int kRuns = 20;

/// Seconds of one run, the mean of kRuns.
template <typename Run>
double Seconds(const Run& run) {
  cudaEvent_t begin;
  cudaEvent_t end;
  CheckCuda(cudaEventCreate(&begin), "cudaEventCreate");
  CheckCuda(cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < 3; ++i) run();
  CheckCuda(cudaEventRecord(begin), "cudaEventRecord");
  for (int i = 0; i < kRuns; ++i) run();
  CheckCuda(cudaEventRecord(end), "cudaEventRecord");
  CheckCuda(cudaEventSynchronize(end), "measured kernels");
  float milliseconds = 0;
  CheckCuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  CheckCuda(cudaEventDestroy(begin), "cudaEventDestroy");
  CheckCuda(cudaEventDestroy(end), "cudaEventDestroy");
  return milliseconds / 1e3 / kRuns;
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void PrintRow(const std::string& kernel, double bytes, double seconds, double copy) {
  std::printf("| %s | %.2f | %.0f | %.0f %% |\n", kernel.c_str(), 1e3 * seconds, bytes / seconds / 1e9,
              100 * bytes / seconds / copy);
}

void Measure() {
  const DeviceArray<float> base(kElements);
  const DeviceArray<float> local(kElements);
  const DeviceArray<float> residual(kElements);
  const DeviceArray<float> next(kElements);
  const DeviceArray<uint8_t> payload(kElements * 4);
  const DeviceArray<double> squares(kElements / 4096);
  const DeviceArray<unsigned long long> first_bad(1);
  // Values of every magnitude below 2: no kernel takes a short way.
  std::vector<float> values(kElements);
  uint32_t state = 1;
  for (float& value : values)
    value = static_cast<float>(static_cast<int32_t>(state = state * 1664525u + 1013904223u)) * 0x1p-31f;
  CheckCuda(cudaMemcpy(base.data(), values.data(), kElements * 4, cudaMemcpyHostToDevice),
            "copy to the device");
  for (const DeviceArray<float>* zeros : {&local, &residual})
    CheckCuda(cudaMemset(zeros->data(), 0, kElements * 4), "cudaMemset");
  const double copied = 8.0 * kElements;
  const double copy =
      copied / Seconds([&] {
        CheckCuda(cudaMemcpyAsync(next.data(), base.data(), kElements * 4, cudaMemcpyDeviceToDevice), "copy");
      });
  std::printf("| kernel | %llu values (ms) | GB/s | of a copy |\n|---|---|---|---|\n",
              static_cast<unsigned long long>(kElements));
  PrintRow("copy", copied, copied / copy, copy);
  for (const CodecKind codec : kCodecKinds) {
    if (!HasKernels(codec)) continue;
    const double encoded = static_cast<double>(CodecFor(codec).EncodedSize(kElements));
    const DevicePush push = {.base = base.data(),
                             .local = local.data(),
                             .residual = residual.data(),
                             .next = next.data(),
                             .payload = payload.data(),
                             .squares = squares.data(),
                             .first_bad = first_bad.data(),
                             .elements = kElements,
                             .beta = 0.9f};
    const std::string name(CodecName(codec));
    PrintRow(name + " push", 16.0 * kElements + encoded + 8.0 * kElements / 4096,
             Seconds([&] { Check(QueuePush(codec, push, nullptr)); }), copy);
    PrintRow(name + " add", 8.0 * kElements + encoded,
             Seconds([&] { Check(QueueAdd(codec, payload.data(), kElements, next.data(), nullptr)); }), copy);
  }
}

}  // namespace
}  // namespace atl::device

int main() {
  if (!atl::device::HasDevice()) {
    std::fprintf(stderr, "kernel_speed: this machine has no GPU, or no driver for it\n");
    return 1;
  }
  atl::device::Measure();
  return 0;
}
