#include "worker/torch/recompute.h"

#include <string>
#include <utility>

#include "worker/torch/generator_state.h"

namespace atl {
namespace {

/// What the backward pass computes again.
struct Repeated : torch::CustomClassHolder {
  Repeated(ModelBlock of, std::string state) : block(std::move(of)), generator(std::move(state)) {}

  const ModelBlock block;
  const std::string generator;  // its state before the block; empty: the block draws nothing
};

/// Sets the default generator back for as long as it lives.
class GeneratorReplay {
 public:
  GeneratorReplay(const torch::Device& device, const std::string& state)
      : device_(device), now_(state.empty() ? "" : GeneratorState(device)) {
    if (!now_.empty()) SetGeneratorState(device_, state);
  }
  ~GeneratorReplay() {
    if (!now_.empty()) SetGeneratorState(device_, now_);
  }
  GeneratorReplay(const GeneratorReplay&) = delete;
  GeneratorReplay& operator=(const GeneratorReplay&) = delete;

 private:
  const torch::Device device_;
  const std::string now_;
};

class RecomputedBlock : public torch::autograd::Function<RecomputedBlock> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const c10::intrusive_ptr<Repeated>& repeated) {
    context->save_for_backward({x});
    context->saved_data["repeated"] = c10::IValue::make_capsule(repeated);
    return repeated->block(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["repeated"].toCapsule();
    const auto& repeated = static_cast<const Repeated&>(*capsule);
    const torch::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    torch::Tensor y;
    {
      const GeneratorReplay replay(x.device(), repeated.generator);
      const torch::AutoGradMode with_gradients(true);
      y = repeated.block(x);
    }
    y.backward(gradients[0]);
    return {x.grad(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor Recomputed(const ModelBlock& block, const torch::Tensor& x, Draws draws) {
  std::string state = draws == Draws::kRandomNumbers ? GeneratorState(x.device()) : "";
  return RecomputedBlock::apply(x, c10::make_intrusive<Repeated>(block, std::move(state)));
}

}  // namespace atl
