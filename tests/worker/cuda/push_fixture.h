#ifndef ATOLL_TESTS_WORKER_CUDA_PUSH_FIXTURE_H_
#define ATOLL_TESTS_WORKER_CUDA_PUSH_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "worker/cuda/host_executor.h"

namespace atl::device {

enum class Input : uint8_t { kRandom, kSubnormal, kHuge, kZero, kTied, kMixed };
inline constexpr Input kInputs[] = {Input::kRandom, Input::kSubnormal, Input::kHuge,
                                    Input::kZero,   Input::kTied,      Input::kMixed};

/// What a push reads.
struct PushInput {
  std::vector<float> base;
  std::vector<float> local;
  std::vector<float> residual;
  static PushInput Of(Input kind, uint64_t elements, uint64_t seed);
};

/// How a kernel is run.
struct PushLaunch {
  CodecKind codec = CodecKind::kInt8;
  ErrorFeedbackForm form = ErrorFeedbackForm::kCarry;
  double beta = 0.9;
  uint32_t threads = 256;
  uint64_t seed = 1;
};

/// What a push writes.
struct PushOutput {
  std::vector<std::byte> payload;
  std::vector<float> residual;
  std::vector<double> squares;  // of each chunk
  double total = 0;
  std::vector<HostExecutor::Traffic> traffic = {};
};

/// By the kernel in the host executor. InvalidArgument naming the element when a sum is not finite.
absl::StatusOr<PushOutput> PushOnDevice(const PushLaunch& launch, const PushInput& input);
/// By core's codec and error feedback.
absl::StatusOr<PushOutput> PushOnHost(const PushLaunch& launch, const PushInput& input);

/// values += decode(payload), by the kernel in the host executor.
absl::Status AddOnDevice(const PushLaunch& launch, std::span<const std::byte> payload,
                         std::span<float> values, std::vector<HostExecutor::Traffic>* traffic = nullptr);

/// The first difference between two outputs, bit for bit; empty: none.
std::string Difference(const PushOutput& device, const PushOutput& host);

}  // namespace atl::device

#endif  // ATOLL_TESTS_WORKER_CUDA_PUSH_FIXTURE_H_
