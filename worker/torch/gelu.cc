#include "worker/torch/gelu.h"

#include <ATen/Parallel.h>

#include "worker/torch/activation_kernels.h"

namespace atl {
namespace {

constexpr int64_t kGeluGrain = 16384;

class HostGelu : public torch::autograd::Function<HostGelu> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x) {
    context->save_for_backward({x});
    torch::Tensor out = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, x.numel(), kGeluGrain, [&](int64_t begin, int64_t end) {
      GeluForward(static_cast<size_t>(end - begin), in + begin, to + begin);
    });
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor x = context->get_saved_variables()[0];
    const torch::Tensor grad_out = gradients[0].contiguous();
    torch::Tensor grad_x = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    const float* grad = grad_out.data_ptr<float>();
    float* to = grad_x.data_ptr<float>();
    at::parallel_for(0, x.numel(), kGeluGrain, [&](int64_t begin, int64_t end) {
      GeluBackward(static_cast<size_t>(end - begin), in + begin, grad + begin, to + begin);
    });
    return {grad_x};
  }
};

}  // namespace

torch::Tensor Gelu(const torch::Tensor& x) {
  if (x.is_cpu() && x.scalar_type() == torch::kFloat32 && x.is_contiguous()) return HostGelu::apply(x);
  return torch::gelu(x, "tanh");
}

}  // namespace atl
