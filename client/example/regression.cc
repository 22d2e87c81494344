// Fits y = weight . x + bias by least squares with Adam, as one worker of an Atoll run with `model:
// external`. Usage: regression COORDINATOR NAME STATE_DIR
#include <array>
#include <atoll/client.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>

constexpr std::size_t kInputs = 16, kBatch = 32;
using Parameters = std::array<float, kInputs + 1>;  // the weights, and at the end the bias

class Regression : public atl::Trainer {
 public:
  std::vector<atl::Parameter> Tensors() {
    return {{"weight", {kInputs}, values_.data()}, {"bias", {1}, &values_[kInputs]}};
  }

  // Every part of the data is an endless sequence, and a sample's number is its seed: seeking costs nothing.
  void UsePartition(std::uint32_t part, std::uint32_t) override { now_.part = part, now_.samples = 0; }
  void Seek(std::uint64_t samples) override { now_.samples = samples; }

  atl::StepResult Step(double learning_rate) override {
    Parameters gradient{};
    double loss = 0;
    for (std::size_t i = 0; i < kBatch; ++i, ++now_.samples) {
      std::seed_seq seed{now_.part, now_.samples};
      std::mt19937 random(seed);
      std::normal_distribution<float> normal;
      Parameters x;
      for (float& value : x) value = normal(random);
      x[kInputs] = 1;
      float error = 0;  // the true parameters are 0, 0.5, 1, 1.5, ...
      for (std::size_t j = 0; j < x.size(); ++j) error += x[j] * (values_[j] - 0.5F * static_cast<float>(j));
      for (std::size_t j = 0; j < x.size(); ++j) gradient[j] += 2 * error * x[j] / kBatch;
      loss += error * error / kBatch;
    }
    const double step = static_cast<double>(++now_.steps);
    for (std::size_t j = 0; j < values_.size(); ++j) {
      now_.mean[j] += 0.1F * (gradient[j] - now_.mean[j]);
      now_.square[j] += 0.001F * (gradient[j] * gradient[j] - now_.square[j]);
      const double square = now_.square[j] / (1 - std::pow(0.999, step));
      const double mean = now_.mean[j] / (1 - std::pow(0.9, step));
      values_[j] -= static_cast<float>(learning_rate * mean / (std::sqrt(square) + 1e-8));
    }
    if (now_.steps == 1) std::printf("first loss %.6f\n", loss);
    last_loss = loss;
    atl::StepResult result;
    result.loss = loss;
    result.tokens = kBatch;
    result.samples = now_.samples;
    return result;
  }

  atl::State Save() override {
    atl::State state{std::vector<char>(sizeof(now_)), "adam/17", now_.steps};
    std::memcpy(state.bytes.data(), &now_, sizeof(now_));
    return state;
  }
  void Load(const char* bytes, std::size_t size) override {
    if (size != sizeof(now_)) throw std::invalid_argument("the saved state is of another program");
    std::memcpy(&now_, bytes, sizeof(now_));
  }

  double last_loss = 0;

 private:
  Parameters values_{};
  // What the next steps depend on besides the parameters.
  struct {
    Parameters mean, square;
    std::uint64_t steps, part, samples;
  } now_{};
};

int main(int argc, char** argv) try {
  if (argc != 4) throw std::invalid_argument("usage: regression COORDINATOR NAME STATE_DIR");
  Regression regression;
  atl::Client client({{"coordinator", argv[1]}, {"name", argv[2]}, {"state-dir", argv[3]}},
                     regression.Tensors());
  const atl::End end = client.Run(regression);
  std::printf("%s\nlast loss %.6f\n", end.text.c_str(), regression.last_loss);
  return end.exit_code;
} catch (const std::exception& error) {
  std::fprintf(stderr, "regression: %s\n", error.what());
  return 1;
}
