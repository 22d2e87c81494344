#ifndef ATOLL_CORE_OUTER_OPTIMIZER_H_
#define ATOLL_CORE_OUTER_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/run_options.h"

namespace atl {

/// Vectors of the fragment's size that the optimizer keeps between steps: nesterov 1 (v), sgd 0, adam 2 (m,
/// v), delayed_nesterov 2 (m, the sum since its last update). All start at zero.
size_t OuterStateVectors(OuterOptimizerKind kind);
/// Their names in the same order, for files (docs/reference/model_files.md): "momentum" of nesterov.
std::span<const std::string_view> OuterStateNames(OuterOptimizerKind kind);

/// One outer step on a range: theta_out from theta_in and the mean pseudo-gradient d, updating `state` in
/// place. Element-wise, float32, in this order of operations, never fused (docs/reference/outer_step.md):
///   nesterov  v = mu*v + d ;  theta = theta - eta*(d + mu*v)      torch.optim.SGD(nesterov=True)
///   sgd       theta = theta - eta*d
///   adam      m = b1*m + (1-b1)*d ;  v = b2*v + ((1-b2)*d)*d ;
///             theta = theta - (eta/(1-b1^t)) * (m / (sqrt(v)/sqrt(1-b2^t) + eps))   torch.optim.Adam, t =
///             step
///   delayed_nesterov  s = s + d ; when step is a multiple of N: m = mu*m + s/N, s = 0 ;
///             theta = theta - eta*(d/N + k*mu*m), k = 1 - c*N + c when m was updated, else c
///             (Liu et al., arXiv 2401.09135, algorithm 3). With c = 0 the N steps of a window add up to the
///             nesterov step on the mean of their N pseudo-gradients.
/// All spans have the same size; `state` has OuterStateVectors(options.optimizer) of them. theta_out may be
/// theta_in. Returns whether all that was written is finite. `step` counts the outer steps that this state
/// has seen, this one included (1 for the first): the version less those that no round made
/// (RoundRecord::outer_steps).
bool OuterStepRange(const OuterOptions& options, uint64_t step, std::span<const float> mean,
                    std::span<const float> theta_in, std::span<float> theta_out,
                    std::span<const std::span<float>> state);

/// The step of averaged tensors, in place of OuterStepRange: without learning rate and state.
///   theta = theta - d ;  delayed_nesterov  theta = theta - d/N
/// With d = sum w_i (theta - x_i) and weights that add up to 1, theta becomes sum w_i x_i. With
/// delayed_nesterov, N contributions are as many versions, so each moves theta by its share. Returns whether
/// all that was written is finite.
bool AverageRange(const OuterOptions& options, std::span<const float> mean, std::span<const float> theta_in,
                  std::span<float> theta_out);

}  // namespace atl

#endif  // ATOLL_CORE_OUTER_OPTIMIZER_H_
