#include "worker/torch/document_layout.h"

#include <limits>

namespace atl {

DocumentLayout::DocumentLayout(const torch::Tensor& documents, const torch::Tensor& places)
    : positions(places) {
  const torch::Tensor visible = documents.unsqueeze(2).eq(documents.unsqueeze(1)).tril_();
  const torch::TensorOptions options = documents.options().dtype(torch::kFloat32);
  penalties = torch::zeros(visible.sizes(), options)
                  .masked_fill_(visible.logical_not(), -std::numeric_limits<float>::infinity())
                  .unsqueeze(1);
}

}  // namespace atl
