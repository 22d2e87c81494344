#ifndef ATOLL_WORKER_TORCH_SOFTMAX_KERNELS_H_
#define ATOLL_WORKER_TORCH_SOFTMAX_KERNELS_H_

#include <cstddef>

// The cross-entropy of one row of logits on host memory, vectorised. No LibTorch.

namespace atl {

/// Returns the cross-entropy of the softmax of `logits` against the class `target`, log(sum_i exp(logits[i]))
/// - logits[target], and replaces the logits by `scale` times its gradient: scale * (softmax - onehot). NaN
/// when a logit is NaN or +infinity. Requires target < classes. The exponentials are summed in float32, in
/// sixteen sums side by side: the error grows with `classes`, to 3e-6 of the loss at 50257 (measured).
double CrossEntropyRow(size_t classes, size_t target, float scale, float* logits);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_SOFTMAX_KERNELS_H_
