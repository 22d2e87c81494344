#ifndef ATOLL_TESTS_BYZANTINE_ATTACK_H_
#define ATOLL_TESTS_BYZANTINE_ATTACK_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace atl::byzantine {

/// What a Byzantine worker makes of its honest pseudo-gradient. It knows the protocol and keeps to it.
enum class Attack : uint8_t {
  kNone,
  kSignFlip,    // -x: of the norm of the others
  kScaled,      // 100 x
  kScaledFlip,  // -100 x
  kNoise,       // Gaussian noise of ten times the norm of x
  kQuietNoise,  // Gaussian noise of the norm of x
  kStale,       // what it sent in the first round, again and again
  kInflated,    // -x, with claims of a billion tokens in one step
  kNan,
  kInfinity,
};
inline constexpr Attack kAttacks[] = {Attack::kSignFlip, Attack::kScaled,     Attack::kScaledFlip,
                                      Attack::kNoise,    Attack::kQuietNoise, Attack::kStale,
                                      Attack::kInflated, Attack::kNan,        Attack::kInfinity};
std::string AttackName(Attack attack);

struct Claims {
  uint64_t tokens = 0;
  uint32_t steps = 0;
};

/// One attacker's state over a run.
class Attacker {
 public:
  Attacker(Attack attack, uint64_t seed) : attack_(attack), seed_(seed) {}

  /// Changes x, and what is claimed of it.
  void Corrupt(std::span<float> x, Claims& claims);

 private:
  void MakeNoise(std::span<float> x, double norms);

  const Attack attack_;
  uint64_t seed_;
  std::vector<float> first_;
};

}  // namespace atl::byzantine

#endif  // ATOLL_TESTS_BYZANTINE_ATTACK_H_
