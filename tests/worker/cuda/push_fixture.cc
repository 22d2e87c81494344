#include "tests/worker/cuda/push_fixture.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/error_feedback.h"
#include "core/payload_squares.h"
#include "worker/cuda/kernels/all.h"

namespace atl::device {
namespace {

/// Memory at a multiple of 64 bytes, as a device's allocations are.
template <typename T>
class Aligned {
 public:
  Aligned(size_t size, int fill) : memory_(size * sizeof(T) + 64), size_(size) {
    void* at = memory_.data();
    size_t room = memory_.size();
    data_ = static_cast<T*>(std::align(64, size * sizeof(T), at, room));
    std::memset(static_cast<void*>(data_), fill, size * sizeof(T));
  }
  explicit Aligned(std::span<const T> values) : Aligned(values.size(), 0) {
    std::copy(values.begin(), values.end(), data_);
  }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> constant() const { return {data_, size_}; }

 private:
  std::vector<std::byte> memory_;
  size_t size_;
  T* data_;
};

float Draw(Input kind, uint64_t i, std::mt19937_64& engine) {
  std::normal_distribution<float> normal;
  switch (kind) {
    case Input::kRandom:
      return 1e-3f * normal(engine) * std::exp2(normal(engine));
    case Input::kSubnormal:
      return std::bit_cast<float>(static_cast<uint32_t>(engine() & 0x80000fffu));
    case Input::kHuge:
      return 1e37f * normal(engine);
    case Input::kZero:
      return engine() % 2 == 0 ? 0.0f : -0.0f;
    case Input::kTied:
      return 0.25f * static_cast<float>(static_cast<int>(engine() % 7) - 3);
    case Input::kMixed: {
      const uint64_t which = (i / 256) % 5;  // every block of 256 another kind
      if (which < 5 && which != 4)
        return Draw(static_cast<Input>(which), i, engine) * (which == 2 ? 0.1f : 1.0f);
      return std::ldexp(normal(engine), static_cast<int>(engine() % 250) - 140);
    }
  }
  return 0;
}

PushArguments ArgumentsOf(const PushLaunch& launch, uint64_t elements) {
  PushArguments arguments;
  arguments.elements = elements;
  arguments.beta = static_cast<float>(launch.beta);
  arguments.rest = 1.0f - arguments.beta;
  arguments.kept = launch.form == ErrorFeedbackForm::kCarry ? arguments.beta : 1.0f;
  return arguments;
}

uint32_t Blocks(uint64_t elements) { return static_cast<uint32_t>((elements + kChunk - 1) / kChunk); }

}  // namespace

PushInput PushInput::Of(Input kind, uint64_t elements, uint64_t seed) {
  std::mt19937_64 engine(seed);
  PushInput input;
  for (uint64_t i = 0; i < elements; ++i) {
    const float value = Draw(kind, i, engine);
    // Zeros are differences of equal values, so that the kernel computes them.
    const bool tied = kind == Input::kTied || kind == Input::kZero;
    input.local.push_back(tied ? 1.0f : Draw(kind, i, engine));
    input.base.push_back(tied ? 1.0f + value : value);
    input.residual.push_back(tied ? 0.0f : 0.1f * Draw(kind, i, engine));
  }
  return input;
}

absl::StatusOr<PushOutput> PushOnDevice(const PushLaunch& launch, const PushInput& input) {
  const uint64_t elements = input.base.size();
  HostExecutor executor({.seed = launch.seed});
  const Aligned<float> base(input.base);
  const Aligned<float> local(input.local);
  const Aligned<float> residual(input.residual);
  Aligned<float> next(elements, 0x5a);
  Aligned<uint8_t> payload(CodecFor(launch.codec).EncodedSize(elements), 0x5a);
  Aligned<double> squares(Blocks(elements), 0x5a);
  Aligned<unsigned long long> first_bad(1, 0);
  first_bad.span()[0] = elements;
  PushArguments arguments = ArgumentsOf(launch, elements);
  arguments.base = executor.Global("base", base.constant());
  arguments.local = executor.Global("local", local.constant());
  arguments.residual = executor.Global("residual", residual.constant());
  arguments.next = executor.Global("next", next.span(), Content::kUninitialised);
  arguments.payload = executor.Global("payload", payload.span(), Content::kUninitialised);
  arguments.squares = executor.Global("squares", squares.span(), Content::kUninitialised);
  arguments.first_bad = executor.Global("first_bad", first_bad.span());
  absl::Status status;
  VisitKernels(launch.codec, [&]<typename Kernels>() {
    if (launch.form == ErrorFeedbackForm::kCarry) {
      status = executor.Launch<typename Kernels::template Encode<Feedback::kCarry>>(
          Blocks(elements), launch.threads, arguments);
    } else {
      status = executor.Launch<typename Kernels::template Encode<Feedback::kMovingAverage>>(
          Blocks(elements), launch.threads, arguments);
    }
  });
  ATOLL_RETURN_IF_ERROR(status);
  if (first_bad.span()[0] != elements) {
    return absl::InvalidArgumentError(absl::StrFormat("element %d", first_bad.span()[0]));
  }
  PushOutput output;
  const auto bytes = std::as_bytes(payload.constant());
  output.payload.assign(bytes.begin(), bytes.end());
  output.residual.assign(next.constant().begin(), next.constant().end());
  output.squares.assign(squares.constant().begin(), squares.constant().end());
  for (const double chunk : output.squares) output.total += chunk;
  output.traffic = executor.traffic();
  return output;
}

absl::StatusOr<PushOutput> PushOnHost(const PushLaunch& launch, const PushInput& input) {
  const Codec& codec = CodecFor(launch.codec);
  const uint64_t elements = input.base.size();
  ErrorFeedback feedback(codec, launch.beta, elements, launch.form);
  ATOLL_RETURN_IF_ERROR(feedback.Restore(input.residual));
  std::vector<float> delta(elements);
  for (uint64_t i = 0; i < elements; ++i) delta[i] = input.base[i] - input.local[i];
  PushOutput output;
  output.payload.resize(codec.EncodedSize(elements));
  ATOLL_RETURN_IF_ERROR(feedback.Encode(delta, output.payload));
  output.residual.assign(feedback.residual().begin(), feedback.residual().end());
  ATOLL_RETURN_IF_ERROR(codec.Validate(output.payload, elements));
  for (uint64_t first = 0; first < elements; first += kChunk) {
    const uint64_t n = std::min<uint64_t>(kChunk, elements - first);
    const auto piece = std::span(output.payload).subspan(codec.EncodedSize(first), codec.EncodedSize(n));
    ATOLL_RETURN_IF_ERROR(AddSquares(codec, piece, n, output.squares.emplace_back()));
  }
  ATOLL_RETURN_IF_ERROR(AddSquares(codec, output.payload, elements, output.total));
  return output;
}

absl::Status AddOnDevice(const PushLaunch& launch, std::span<const std::byte> payload,
                         std::span<float> values, std::vector<HostExecutor::Traffic>* traffic) {
  HostExecutor executor({.seed = launch.seed});
  const Aligned<uint8_t> bytes(std::span(reinterpret_cast<const uint8_t*>(payload.data()), payload.size()));
  Aligned<float> held{std::span<const float>(values)};
  PullArguments arguments;
  arguments.elements = values.size();
  arguments.payload = executor.Global("payload", bytes.constant());
  arguments.values = executor.Global("values", held.span());
  absl::Status status;
  VisitKernels(launch.codec, [&]<typename Kernels>() {
    status = executor.Launch<typename Kernels::Add>(Blocks(values.size()), launch.threads, arguments);
  });
  std::copy(held.span().begin(), held.span().end(), values.begin());
  if (traffic != nullptr) *traffic = executor.traffic();
  return status;
}

std::string Difference(const PushOutput& device, const PushOutput& host) {
  if (device.payload.size() != host.payload.size()) return "payloads of different sizes";
  for (size_t i = 0; i < host.payload.size(); ++i) {
    if (device.payload[i] == host.payload[i]) continue;
    return absl::StrFormat("payload byte %d of %d: %#x, the codec has %#x", i, host.payload.size(),
                           std::to_integer<int>(device.payload[i]), std::to_integer<int>(host.payload[i]));
  }
  for (size_t i = 0; i < host.residual.size(); ++i) {
    if (std::bit_cast<uint32_t>(device.residual[i]) == std::bit_cast<uint32_t>(host.residual[i])) continue;
    return absl::StrFormat("residual %d: %a, error feedback has %a", i, device.residual[i], host.residual[i]);
  }
  for (size_t i = 0; i < host.squares.size(); ++i) {
    if (std::bit_cast<uint64_t>(device.squares[i]) == std::bit_cast<uint64_t>(host.squares[i])) continue;
    return absl::StrFormat("squares of chunk %d: %a, AddSquares has %a", i, device.squares[i],
                           host.squares[i]);
  }
  if (device.total != host.total)
    return absl::StrFormat("squares: %a, AddSquares has %a", device.total, host.total);
  return "";
}

}  // namespace atl::device
