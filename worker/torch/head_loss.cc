#include "worker/torch/head_loss.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "worker/torch/softmax_kernels.h"

namespace atl {
namespace {

/// Logits that one task takes at least: some microseconds.
constexpr int64_t kLogitsGrain = 16384;

/// The mean of CrossEntropyRow over the rows of `logits`, which become the gradient of this mean.
double MeanCrossEntropy(const torch::Tensor& targets, torch::Tensor& logits) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const auto row_count = static_cast<double>(rows);
  const int64_t* const target = targets.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    TORCH_CHECK(target[row] >= 0 && target[row] < classes, "token ", target[row],
                " is outside the vocabulary of ", classes);
  }
  auto* const values = logits.data_ptr<float>();
  std::vector<double> losses(static_cast<size_t>(rows));
  at::parallel_for(0, rows, std::max<int64_t>(kLogitsGrain / classes, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      losses[static_cast<size_t>(row)] =
          CrossEntropyRow(static_cast<size_t>(classes), static_cast<size_t>(target[row]),
                          static_cast<float>(1 / row_count), values + row * classes);
    }
  });
  // In one order, so that the bits do not depend on the threads.
  return std::accumulate(losses.begin(), losses.end(), 0.0) / row_count;
}

/// The loss and the gradient of the logits in one pass, where the logits are.
class HostHeadLoss : public torch::autograd::Function<HostHeadLoss> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& head, const torch::Tensor& targets) {
    torch::Tensor logits = torch::mm(x, head.t());
    const double loss = MeanCrossEntropy(targets, logits);
    context->save_for_backward({x, head, logits});
    return torch::full({}, loss, x.options());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &head = saved[1], &of_logits = saved[2];
    torch::Tensor of_x = torch::mm(of_logits, head), of_head = torch::mm(of_logits.t(), x);
    if (const auto factor = gradients[0].item<double>(); factor != 1) {
      of_x.mul_(factor);
      of_head.mul_(factor);
    }
    return {of_x, of_head, torch::Tensor()};
  }
};

class HeadLossFunction : public torch::autograd::Function<HeadLossFunction> {
 public:
  /// padded: the head with further rows of zeros; mask: -infinity in their columns, else 0.
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& padded, const torch::Tensor& mask,
                               const torch::Tensor& targets) {
    const torch::Tensor logits = torch::addmm(mask, x, padded.t()).to(torch::kFloat32);
    const torch::Tensor log_probabilities = torch::log_softmax(logits, 1);
    context->save_for_backward({x, padded, targets, log_probabilities});
    return torch::nll_loss(log_probabilities, targets);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &padded = saved[1], &log_probabilities = saved[3];
    const torch::Tensor target = saved[2].unsqueeze(1);
    torch::Tensor of_logits = torch::empty(log_probabilities.sizes(), x.options());
    torch::exp_out(of_logits, log_probabilities);
    // In float32, because a rounded probability near 1 would leave nothing of the difference.
    of_logits.scatter_(1, target, log_probabilities.gather(1, target).exp().sub(1).to(x.scalar_type()));
    const torch::Tensor scale = gradients[0] / static_cast<double>(x.size(0));
    return {torch::mm(of_logits, padded) * scale, torch::mm(of_logits.t(), x) * scale, torch::Tensor(),
            torch::Tensor()};
  }
};

}  // namespace

torch::Tensor HeadLoss(const torch::Tensor& x, const torch::Tensor& head, const torch::Tensor& targets) {
  const int64_t vocabulary = head.size(0);
  const int64_t padding = (kHeadColumns - vocabulary % kHeadColumns) % kHeadColumns;
  torch::Tensor mask = torch::zeros({vocabulary + padding}, x.options());
  mask.narrow(0, vocabulary, padding).fill_(-std::numeric_limits<float>::infinity());
  const torch::Tensor padded = padding == 0 ? head : torch::constant_pad_nd(head, {0, 0, 0, padding});
  return HeadLossFunction::apply(x, padded, mask, targets);
}

torch::Tensor HeadLogits(const torch::Tensor& x, const torch::Tensor& head, Precision precision) {
  if (precision == Precision::kFp32) return torch::mm(x, head.t());
  return torch::mm(x.to(torch::kBFloat16), head.to(torch::kBFloat16).t()).to(torch::kFloat32);
}

torch::Tensor NextTokenLoss(const torch::Tensor& x, const torch::Tensor& head, const torch::Tensor& targets,
                            Precision precision) {
  const torch::Tensor flat = targets.reshape({-1});
  if (precision == Precision::kBf16 && !x.is_cpu()) {
    return HeadLoss(x.to(torch::kBFloat16), head.to(torch::kBFloat16), flat);
  }
  if (precision == Precision::kFp32 && x.is_cpu()) return HostHeadLoss::apply(x, head, flat.contiguous());
  return torch::nll_loss(torch::log_softmax(HeadLogits(x, head, precision), 1), flat);
}

torch::Tensor CountedTokenLoss(const torch::Tensor& x, const torch::Tensor& head,
                               const torch::Tensor& targets, Precision precision) {
  const torch::Tensor flat = targets.reshape({-1});
  const torch::Tensor rows = flat.ge(0).nonzero().squeeze(1);
  if (rows.size(0) == flat.size(0)) return NextTokenLoss(x, head, flat, precision);
  if (rows.size(0) == 0) return x.sum() * 0;
  return NextTokenLoss(x.index_select(0, rows), head, flat.index_select(0, rows), precision);
}

}  // namespace atl
