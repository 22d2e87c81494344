#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/codec.h"
#include "tests/worker/cuda/device_array.h"
#include "tests/worker/cuda/device_push_memory.h"
#include "worker/cuda/cuda_queue.h"
#include "worker/cuda/device_encoder.h"
#include "worker/cuda/kernel_launch.h"

// Prints, in Markdown, the speed of each kernel on the GPU beside that of a copy within its memory, and what
// a push takes of a round. It says of both goals whether they are met, and ends with 0 also if not: a time is
// no test.

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

/// The lowest of all kernels' shares of a copy, for the goal.
double lowest = 1;

void PrintRow(const std::string& kernel, double bytes, double seconds, double copy) {
  lowest = std::min(lowest, bytes / seconds / copy);
  std::printf("| %s | %.2f | %.0f | %.0f %% |\n", kernel.c_str(), 1e3 * seconds, bytes / seconds / 1e9,
              100 * bytes / seconds / copy);
}

const char* Verdict(bool met) { return met ? "met" : "missed"; }

void MeasureKernels() {
  const DevicePushMemory memory(CodecKind::kFp32, kElements);  // no payload is larger
  // Values of every magnitude below 2: no kernel takes a short way.
  std::vector<float> values(kElements);
  uint32_t state = 1;
  for (float& value : values)
    value = static_cast<float>(static_cast<int32_t>(state = state * 1664525u + 1013904223u)) * 0x1p-31f;
  memory.base.Fill(values);
  for (const DeviceArray<float>* zeros : {&memory.local, &memory.residual})
    CheckCuda(cudaMemset(zeros->data(), 0, kElements * 4), "cudaMemset");
  const double copied = 8.0 * kElements;
  const double copy = copied / Seconds([&] {
                        CheckCuda(cudaMemcpyAsync(memory.next.data(), memory.base.data(), kElements * 4,
                                                  cudaMemcpyDeviceToDevice),
                                  "copy");
                      });
  std::printf("| kernel | %llu values (ms) | GB/s | of a copy |\n|---|---|---|---|\n",
              static_cast<unsigned long long>(kElements));
  PrintRow("copy", copied, copied / copy, copy);
  for (const CodecKind codec : kCodecKinds) {
    if (!HasKernels(codec)) continue;
    const double encoded = static_cast<double>(CodecFor(codec).EncodedSize(kElements));
    const DevicePush push = memory.Push(0.9, ErrorFeedbackForm::kCarry);
    const std::string name(CodecName(codec));
    PrintRow(name + " push", 16.0 * kElements + encoded + 8.0 * kElements / 4096,
             Seconds([&] { Check(QueuePush(codec, push, nullptr)); }), copy);
    PrintRow(name + " add", 8.0 * kElements + encoded, Seconds([&] {
               Check(QueueAdd(codec, memory.payload.data(), kElements, memory.next.data(), nullptr));
             }),
             copy);
  }
  std::printf("\nGoal: at least 70 %% of a copy. Lowest: %.0f %%, %s.\n\n", 100 * lowest,
              Verdict(lowest >= 0.7));
}

constexpr uint64_t kGpt2 = 124439808;  // parameters of GPT-2 124M
constexpr double kRoundSeconds =
    50 * 0.0258;  // of 50 steps of batch 8 on an H200 (docs/reference/benchmarks.md)

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Pushes of the whole model through DeviceEncoder, as a worker makes them.
void MeasurePushes() {
  std::printf(
      "| push of GPT-2 124M | until the next step may begin (ms) | until payload and residual are on the "
      "host (ms) | of a "
      "round of 50 steps |\n|---|---|---|---|\n");
  auto queue = CreateCudaQueue(0, nullptr);
  Check(queue.status());
  const std::vector<float> base(kGpt2, 0.5f);
  const DeviceArray<float> local(kGpt2);
  CheckCuda(cudaMemset(local.data(), 0, kGpt2 * 4), "cudaMemset");
  double most = 0;
  for (const CodecKind codec : {CodecKind::kInt8, CodecKind::kInt4, CodecKind::kE3m0, CodecKind::kTopK64}) {
    const auto encoder = DeviceEncoder::Create({.elements = kGpt2, .codec = codec, .beta = 1}, **queue);
    Check(encoder.status());
    std::vector<std::byte> payload(CodecFor(codec).EncodedSize(kGpt2));
    double held = 1e9;
    double whole = 1e9;
    for (int i = 0; i < 5; ++i) {
      Check((*encoder)->TakeBase(local.data()));
      CheckCuda(cudaDeviceSynchronize(), "a copy");
      const auto begin = std::chrono::steady_clock::now();
      Check((*encoder)->Begin(base, local.data()));
      CheckCuda(cudaStreamSynchronize(nullptr), "a push");
      held = std::min(held, SecondsSince(begin));
      Check((*encoder)->End(payload));
      whole = std::min(whole, SecondsSince(begin));
    }
    most = std::max(most, held / kRoundSeconds);
    std::printf("| %s | %.1f | %.1f | %.2f %% |\n", std::string(CodecName(codec)).c_str(), 1e3 * held,
                1e3 * whole, 100 * held / kRoundSeconds);
  }
  std::printf("\nGoal: at most 1 %% of a round. Highest: %.2f %%, %s.\n", 100 * most, Verdict(most <= 0.01));
}

}  // namespace
}  // namespace atl::device

int main() {
  if (!atl::device::HasDevice()) {
    std::fprintf(stderr, "kernel_speed: this machine has no GPU, or no driver for it\n");
    return 1;
  }
  atl::device::MeasureKernels();
  atl::device::MeasurePushes();
  return 0;
}
