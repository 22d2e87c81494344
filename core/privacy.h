#ifndef ATOLL_CORE_PRIVACY_H_
#define ATOLL_CORE_PRIVACY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "common/ids.h"
#include "core/contribution.h"
#include "core/run_options.h"

// Worker-level differential privacy: every worker clips its pseudo-gradient to norm C and adds Gaussian noise
// of standard deviation sigma * C to each value before it is encoded (the mechanism of DP-FedAvg, McMahan et
// al., arXiv 1710.06963, with the noise on the worker). docs/reference/privacy.md says what that protects
// from whom.

namespace atl {

/// Where noise comes from. What secrecy demands of it is its maker's to say.
class GaussianSource {
 public:
  virtual ~GaussianSource() = default;
  /// Adds independent noise of this standard deviation to every value.
  virtual void AddTo(std::span<float> values, double deviation) = 0;
};

/// The bound of one fragment of `fragments`: C / sqrt(fragments), so that a round's pushes of all of them
/// have norm C together.
double FragmentClipNorm(const PrivacyOptions& options, uint32_t fragments);

/// delta <- delta * min(1, bound / |delta|) + N(0, deviation^2 I). |delta| as VectorNorm; a value that is not
/// finite stays so. `noise` may be null when deviation is 0.
void Privatise(double bound, double deviation, std::span<float> delta, GaussianSource* noise);

/// Renyi divergence of Gaussian mechanisms, composed: RDP of order alpha is rho * alpha, and rho adds up
/// (Mironov, arXiv 1702.07476, propositions 7 and 1). One release of sensitivity s with noise of standard
/// deviation d adds (s / d)^2 / 2. All participate in every round, so nothing is gained by sampling.
double GaussianRho(double sensitivity, double deviation);

/// The least epsilon for which rho gives (epsilon, delta)-differential privacy by
///
///   epsilon = rho * alpha + log((alpha - 1) / alpha) - (log(delta) + log(alpha)) / (alpha - 1)
///
/// over orders alpha > 1 (Canonne, Kamath, Steinke, arXiv 2004.00010, proposition 12; the same bound is
/// theorem 21 of Balle et al., arXiv 1905.09743). 0 for rho 0; delta is in (0, 1).
double EpsilonOf(double rho, double delta);

/// What a run has released of its workers so far, from its round records. Neighbouring runs differ in one
/// worker, all of whose pseudo-gradients are zero in one of them. Pure state, not thread-safe.
///
/// local      against observers of the worker's pushes, the coordinator included: sensitivity C, its own
///            noise sigma * C, one release per contribution.
/// published  against observers of published versions only: the noises of all workers of a round add up.
///            Only where the merge is a fixed sum (mean without norm guard); the weights are not secret.
class PrivacyAccountant {
 public:
  /// Fragments of the run: each contribution is to one of so many, with FragmentClipNorm.
  explicit PrivacyAccountant(uint32_t fragments) : fragments_(fragments) {}

  void Note(const RoundRecord& record);

  /// Of the worker that has released the most; 0: nothing was released with noise.
  double local_rho() const;
  /// nullopt: a version was merged otherwise than by a fixed sum.
  std::optional<double> published_rho() const;
  /// A contribution was taken without noise: no epsilon holds.
  bool without_noise() const { return without_noise_; }

 private:
  const uint32_t fragments_;
  std::map<WorkerName, double> local_;
  std::map<WorkerName, double> published_;
  bool summed_ = true;
  bool without_noise_ = false;
};

/// In advance: each of `workers` contributes to all of so many rounds with equal weights.
double PlannedLocalRho(const PrivacyOptions& options, uint64_t rounds);
double PlannedPublishedRho(const PrivacyOptions& options, uint64_t rounds, uint32_t workers);
/// Whether a version shows no more of its contributions than their weighted sum.
bool IsFixedSum(const MergeOptions& merge);

}  // namespace atl

#endif  // ATOLL_CORE_PRIVACY_H_
