#ifndef ATOLL_CORE_KNOWN_LOSS_H_
#define ATOLL_CORE_KNOWN_LOSS_H_

#include <cmath>

#include "core/contribution.h"
#include "core/model_options.h"

namespace atl {

/// The largest magnitude of an external model's loss. Such a loss may be anything: a density's negative
/// log-likelihood is negative, an unscaled squared error is huge. A float32 holds this one, and float64 sums
/// of all losses that a run records stay far from overflow.
inline constexpr double kLargestExternalLoss = 1e30;
/// A loss that some model may have. Also false for values that are not finite.
inline bool IsPossibleLoss(double loss) { return std::abs(loss) <= kLargestExternalLoss; }

/// Whether this model may have this loss: one beyond counts as not known.
inline bool IsLossOf(const ModelOptions& model, double loss) {
  return model.external() != nullptr ? IsPossibleLoss(loss) : IsPlausibleLoss(loss);
}
/// 0: not known.
inline double KnownLoss(const ModelOptions& model, double loss) { return IsLossOf(model, loss) ? loss : 0; }

}  // namespace atl

#endif  // ATOLL_CORE_KNOWN_LOSS_H_
