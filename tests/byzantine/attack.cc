#include "tests/byzantine/attack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/random.h"
#include "core/payload_stats.h"

namespace atl::byzantine {

std::string AttackName(Attack attack) {
  switch (attack) {
    case Attack::kNone:
      return "none";
    case Attack::kSignFlip:
      return "sign flipped";
    case Attack::kScaled:
      return "scaled by 100";
    case Attack::kScaledFlip:
      return "scaled by -100";
    case Attack::kNoise:
      return "noise, 10 norms";
    case Attack::kQuietNoise:
      return "noise, 1 norm";
    case Attack::kStale:
      return "stale, replayed";
    case Attack::kInflated:
      return "weight inflated, flipped";
    case Attack::kNan:
      return "NaN";
    case Attack::kInfinity:
      return "infinity";
  }
  return "";
}

void Attacker::MakeNoise(std::span<float> x, double norms) {
  const double deviation = norms * VectorNorm(x) / std::sqrt(static_cast<double>(x.size()));
  SplitMixGenerator random(seed_ = SplitMix64(seed_));
  for (float& value : x) {
    const double length = std::sqrt(-2 * std::log(1 - random.Uniform()));
    value = static_cast<float>(deviation * length * std::cos(2 * std::numbers::pi * random.Uniform()));
  }
}

void Attacker::Corrupt(std::span<float> x, Claims& claims) {
  const auto scale = [x](float factor) {
    for (float& value : x) value *= factor;
  };
  switch (attack_) {
    case Attack::kNone:
      return;
    case Attack::kSignFlip:
      return scale(-1);
    case Attack::kScaled:
      return scale(100);
    case Attack::kScaledFlip:
      return scale(-100);
    case Attack::kNoise:
      return MakeNoise(x, 10);
    case Attack::kQuietNoise:
      return MakeNoise(x, 1);
    case Attack::kStale:
      if (first_.empty()) first_.assign(x.begin(), x.end());
      std::ranges::copy(first_, x.begin());
      return;
    case Attack::kInflated:
      claims = {.tokens = 1000000000, .steps = 1};
      return scale(-1);
    case Attack::kNan:
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      return;
    case Attack::kInfinity:
      x[0] = std::numeric_limits<float>::infinity();
      return;
  }
}

}  // namespace atl::byzantine
