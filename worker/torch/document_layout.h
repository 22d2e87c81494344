#ifndef ATOLL_WORKER_TORCH_DOCUMENT_LAYOUT_H_
#define ATOLL_WORKER_TORCH_DOCUMENT_LAYOUT_H_

#include "worker/torch/libtorch.h"

namespace atl {

/// The documents of a batch, none of which sees another. Copies share the tensors. See worker/data/batches.h.
struct DocumentLayout {
  /// documents, places: int64 [batch, time], the number of each token's document in its row, and its place
  /// there from 0. Throws what LibTorch throws.
  DocumentLayout(const torch::Tensor& documents, const torch::Tensor& places);

  torch::Tensor positions;  // `places`
  /// float32 [batch, 1, time, time], to be added to the scores of attention: 0 where the token of the third
  /// index sees that of the fourth, which is of its document and not behind it; else -infinity.
  torch::Tensor penalties;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DOCUMENT_LAYOUT_H_
