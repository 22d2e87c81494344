// Codecs, merge and outer step on one core, beside what the hardware can do in the same run: a plain copy and
// a STREAM-like triad (McCalpin 1995). The counter of_stream is a rate over the triad's, measured just
// before, each counting the bytes that must move (no write-allocate).
//
//   build/release/bin/atoll-core-bench --benchmark_counters_tabular=true

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iterator>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/instruction_set.h"
#include "core/codec.h"
#include "core/error_feedback.h"
#include "core/fused_outer_step.h"
#include "core/merge_planner.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

constexpr uint64_t kElements = uint64_t{16} << 20;  // 64 MiB of float32: beyond every cache
constexpr int kLastKind = std::size(kCodecKinds) - 1;

/// Normally distributed; of another seed the same ones turned round, since drawing them
/// takes longer than all that is measured.
std::vector<float> RandomValues(uint32_t seed) {
  static const std::vector<float> drawn = [] {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal(0, 0.01f);
    std::vector<float> values(kElements);
    for (float& value : values) value = normal(rng);
    return values;
  }();
  std::vector<float> values(kElements);
  std::rotate_copy(drawn.begin(), drawn.begin() + int64_t{seed} * 123457, drawn.end(), values.begin());
  return values;
}

std::vector<std::byte> Encoded(const Codec& codec, const std::vector<float>& values) {
  std::vector<std::byte> payload(codec.EncodedSize(values.size()));
  codec.Encode(values, payload);
  return payload;
}

/// Bytes per second of float32 values handled, whatever their encoding.
void CountValues(benchmark::State& state, const Codec& codec) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kElements * sizeof(float)));
  state.SetLabel(std::string(CodecName(codec.kind())));
}

struct Triad {
  ATOLL_KERNEL void Run(const float* __restrict b, const float* __restrict c, float s, size_t n,
                        float* __restrict a) {
    for (size_t i = 0; i < n; ++i) a[i] = b[i] + s * c[i];
  }
};

constexpr double kTriadBytes = 3.0 * kElements * sizeof(float);

/// Bytes per second of a triad: the median of some.
double StreamRate() {
  static const std::vector<float> b = RandomValues(1), c = RandomValues(2);
  static std::vector<float> a(kElements);
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) {
    const std::clock_t begin = std::clock();  // processor time, as the benchmarks count
    RunKernel<Triad>(b.data(), c.data(), 3.0f, a.size(), a.data());
    benchmark::ClobberMemory();
    rates.push_back(kTriadBytes * CLOCKS_PER_SEC / static_cast<double>(std::clock() - begin));
  }
  std::nth_element(rates.begin(), rates.begin() + 3, rates.end());
  return rates[3];
}

/// Bytes moved, as a rate and as a share of the triad's.
void CountBytes(benchmark::State& state, int64_t bytes, double stream) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * bytes);
  state.counters["of_stream"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(bytes) / stream,
                         benchmark::Counter::kIsRate);
}

void Stream(benchmark::State& state) {
  const std::vector<float> b = RandomValues(1), c = RandomValues(2);
  std::vector<float> a(kElements);
  for (auto _ : state) {
    RunKernel<Triad>(b.data(), c.data(), 3.0f, a.size(), a.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kTriadBytes));
  state.SetLabel(std::string(InstructionSetName(ChosenInstructionSet())));
}

void Copy(benchmark::State& state) {
  const std::vector<float> values = RandomValues(1);
  std::vector<float> out(kElements);
  for (auto _ : state) {
    std::memcpy(out.data(), values.data(), kElements * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kElements * sizeof(float)));
}

void Encode(benchmark::State& state) {
  const Codec& codec = CodecFor(kCodecKinds[state.range(0)]);
  const std::vector<float> values = RandomValues(1);
  std::vector<std::byte> payload(codec.EncodedSize(kElements));
  for (auto _ : state) {
    codec.Encode(values, payload);
    benchmark::ClobberMemory();
  }
  CountValues(state, codec);
}

void Decode(benchmark::State& state) {
  const Codec& codec = CodecFor(kCodecKinds[state.range(0)]);
  const std::vector<std::byte> payload = Encoded(codec, RandomValues(1));
  std::vector<float> out(kElements);
  for (auto _ : state) {
    codec.DecodeRange(payload, kElements, 0, out);
    benchmark::ClobberMemory();
  }
  CountValues(state, codec);
}

void Norm(benchmark::State& state) {
  const Codec& codec = CodecFor(kCodecKinds[state.range(0)]);
  const std::vector<std::byte> payload = Encoded(codec, RandomValues(1));
  for (auto _ : state) benchmark::DoNotOptimize(PayloadNorm(codec, payload, kElements));
  CountValues(state, codec);
}

/// What a worker does with a pseudo-gradient: add the residual, encode, take the new residual.
void EncodeWithErrorFeedback(benchmark::State& state) {
  const Codec& codec = CodecFor(kCodecKinds[state.range(0)]);
  const std::vector<float> delta = RandomValues(1);
  std::vector<std::byte> payload(codec.EncodedSize(kElements));
  ErrorFeedback feedback(codec, 0.9, kElements);
  for (auto _ : state) {
    if (!feedback.Encode(delta, payload).ok()) state.SkipWithError("the encoding failed");
  }
  CountValues(state, codec);
}

/// A round of four workers, who agree more or less.
struct Round {
  explicit Round(const Codec& codec) {
    for (uint32_t worker = 0; worker < 4; ++worker) payloads.push_back(Encoded(codec, RandomValues(worker)));
    for (const auto& payload : payloads) {
      inputs.push_back({.codec = &codec, .payload = payload, .weight = 0.25f});
      inputs.back().norm = *PayloadNorm(codec, payload, kElements);
    }
  }
  std::vector<std::vector<std::byte>> payloads;
  std::vector<MergeInput> inputs;
  std::vector<float> theta = RandomValues(9), next = std::vector<float>(kElements);
  std::vector<float> momentum = std::vector<float>(kElements);

  /// Each payload, theta and momentum are read; theta and momentum are written.
  int64_t moved() const {
    return static_cast<int64_t>(4 * payloads[0].size() + 4 * kElements * sizeof(float));
  }

  void Step(benchmark::State& state, const MergePlan& plan) {
    const std::vector<std::span<float>> outer_state = {momentum};
    if (!MergeAndStepRange(plan, OuterOptions{}, 1, 0, theta, next, outer_state).ok()) {
      state.SkipWithError("the step failed");
    }
  }
};

/// What closing a round of four workers costs: decode, weighted mean, Nesterov, in one pass.
void MergeFourAndStep(benchmark::State& state) {
  const Codec& codec = CodecFor(kCodecKinds[state.range(0)]);
  Round round(codec);
  const MergePlan plan = WeightedMeanPlan(round.inputs, kElements);
  const double stream = StreamRate();
  for (auto _ : state) round.Step(state, plan);
  CountBytes(state, round.moved(), stream);
  state.SetLabel(std::string(CodecName(codec.kind())));
}

/// The same with every merge, the passes before it included; bytes are those of the one pass, so that rates
/// compare.
void MergeFourBy(benchmark::State& state, MergeOptions options) {
  Round round(CodecFor(CodecKind::kFp32));
  FragmentLayout layout{.elements = kElements};
  constexpr uint64_t kTensor = uint64_t{1} << 20;
  for (uint64_t offset = 0; offset < kElements; offset += kTensor) {
    layout.slots.push_back({.tensor = 0, .offset = offset, .elements = kTensor});
  }
  const double stream = StreamRate();
  for (auto _ : state) {
    MergePlanner planner(options, round.inputs, layout);
    while (planner.needs_pass()) {
      for (size_t piece = 0; piece < planner.pieces(); ++piece) planner.Measure(piece);
      planner.EndPass();
    }
    round.Step(state, planner.plan());
  }
  CountBytes(state, round.moved(), stream);
}

BENCHMARK(Stream)->Unit(benchmark::kMillisecond);
BENCHMARK(Copy)->Unit(benchmark::kMillisecond);
BENCHMARK(Encode)->DenseRange(0, kLastKind)->Unit(benchmark::kMillisecond);
BENCHMARK(EncodeWithErrorFeedback)->DenseRange(0, kLastKind)->Unit(benchmark::kMillisecond);
BENCHMARK(Decode)->DenseRange(0, kLastKind)->Unit(benchmark::kMillisecond);
BENCHMARK(Norm)->DenseRange(0, kLastKind)->Unit(benchmark::kMillisecond);
BENCHMARK(MergeFourAndStep)->DenseRange(0, kLastKind)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeFourBy, guarded_mean, {.norm_guard = true})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeFourBy, rda, {.method = MergeMethod::kRda})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeFourBy, trimmed_mean, {.method = MergeMethod::kTrimmedMean, .trim = 0.25})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeFourBy, median, {.method = MergeMethod::kMedian})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeFourBy, centered_clip, {.method = MergeMethod::kCenteredClip})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace atl

BENCHMARK_MAIN();
