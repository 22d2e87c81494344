// Delayed Nesterov against its paper and against the synchronous step that it must add up to.

#include <cmath>
#include <vector>

#include "core/outer_optimizer.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

constexpr size_t kElements = 600;

/// Parameters and state of one optimizer, stepped with whole vectors.
struct Model {
  OuterOptions options;
  std::vector<float> theta, first, second;
  uint64_t version = 0;

  Model(OuterOptions outer, const std::vector<float>& start)
      : options(outer), theta(start), first(start.size()), second(start.size()) {}

  void Step(const std::vector<float>& d) {
    const std::vector<std::span<float>> all = {first, second};
    OuterStepRange(options, ++version, d, theta, theta,
                   std::span(all).first(OuterStateVectors(options.optimizer)));
  }
};

/// Multiples of 1/64 below 1: sums and products of a few of them are exact in float32.
std::vector<float> Dyadic(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(kElements);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 127) - 63) / 64;
  return values;
}

std::vector<float> MeanOf(const std::vector<std::vector<float>>& deltas) {
  std::vector<float> mean(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    double sum = 0;
    for (const std::vector<float>& d : deltas) sum += d[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(deltas.size()));
  }
  return mean;
}

TEST(DelayedNesterov, WithoutSpreadAWindowIsTheSynchronousStepExactly) {
  constexpr uint32_t kWorkers = 4;
  const OuterOptions synchronous{.learning_rate = 0.5, .momentum = 0.5};
  OuterOptions delayed = synchronous;
  delayed.optimizer = OuterOptimizerKind::kDelayedNesterov;
  delayed.delay = kWorkers;
  Model one(synchronous, Dyadic(1));
  Model many(delayed, Dyadic(1));
  for (uint64_t window = 0; window < 3; ++window) {
    std::vector<std::vector<float>> deltas;
    for (uint64_t w = 0; w < kWorkers; ++w) deltas.push_back(Dyadic(10 + window * kWorkers + w));
    one.Step(MeanOf(deltas));
    for (const std::vector<float>& d : deltas) many.Step(d);
    ASSERT_EQ(Bits(many.theta), Bits(one.theta)) << window;
    ASSERT_EQ(Bits(many.first), Bits(one.first)) << window;
    ASSERT_EQ(Bits(many.second), Bits(std::vector<float>(kElements))) << "the sum begins anew";
  }
}

TEST(DelayedNesterov, WithoutSpreadAWindowIsTheSynchronousStepToWithinRounding) {
  for (const uint32_t workers : {1u, 2u, 3u, 5u, 8u}) {
    OuterOptions delayed;
    delayed.optimizer = OuterOptimizerKind::kDelayedNesterov;
    delayed.delay = workers;
    const std::vector<float> start = RandomValues(kElements, 1, 1.0f);
    Model one(OuterOptions{}, start);
    Model many(delayed, start);
    for (uint64_t window = 0; window < 5; ++window) {
      std::vector<std::vector<float>> deltas;
      for (uint64_t w = 0; w < workers; ++w) {
        deltas.push_back(RandomValues(kElements, 10 + window * workers + w, 0.1f));
      }
      one.Step(MeanOf(deltas));
      for (const std::vector<float>& d : deltas) many.Step(d);
    }
    for (size_t i = 0; i < kElements; ++i) {
      ASSERT_NEAR(many.theta[i], one.theta[i], 3e-6 * (1 + std::abs(one.theta[i]))) << workers;
    }
  }
}

/// Liu et al., arXiv 2401.09135, algorithm 3, in float64: t counts from 0, g_t is the pseudo-gradient that
/// arrives then.
struct Algorithm3 {
  double learning_rate, beta, c;
  uint32_t N;
  double theta, m = 0, delta = 0;
  uint64_t t = 0;

  void Receive(double g) {
    delta += g;
    if ((t + 1) % N == 0) {
      m = beta * m + delta / N;
      theta -= learning_rate * ((1 - c * N + c) * beta * m + g / N);
      delta = 0;
    } else {
      theta -= learning_rate * (c * beta * m + g / N);
    }
    ++t;
  }
};

TEST(DelayedNesterov, IsAlgorithm3OfThePaper) {
  for (const double spread : {0.0, 0.1, 0.25}) {
    OuterOptions options{.learning_rate = 0.7, .momentum = 0.9};
    options.optimizer = OuterOptimizerKind::kDelayedNesterov;
    options.delay = 4;
    options.spread = spread;
    Model model(options, {1.0f});
    Algorithm3 paper{.learning_rate = 0.7, .beta = 0.9, .c = spread, .N = 4, .theta = 1.0};
    for (int t = 0; t < 30; ++t) {
      const auto g = static_cast<float>(0.3 * std::sin(t) + 0.05);
      model.Step({g});
      paper.Receive(g);
      ASSERT_NEAR(model.theta[0], paper.theta, 2e-6 * (1 + std::abs(paper.theta))) << spread << ' ' << t;
      ASSERT_NEAR(model.first[0], paper.m, 1e-6) << t;
      ASSERT_NEAR(model.second[0], paper.delta, 1e-6) << t;
    }
  }
}

TEST(DelayedNesterov, WithoutADelayTakesEveryStepAsNesterov) {
  // 0 comes only from a record made by hand; the configuration puts run.workers there.
  for (const uint32_t delay : {0u, 1u}) {
    OuterOptions options;
    options.optimizer = OuterOptimizerKind::kDelayedNesterov;
    options.delay = delay;
    Model delayed(options, {1.0f});
    Model plain(OuterOptions{}, {1.0f});
    for (const float d : {0.5f, 0.25f, -0.1f}) {
      delayed.Step({d});
      plain.Step({d});
      EXPECT_FLOAT_EQ(delayed.theta[0], plain.theta[0]);
    }
  }
}

}  // namespace
}  // namespace atl
