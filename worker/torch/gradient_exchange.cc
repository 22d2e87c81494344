#include "worker/torch/gradient_exchange.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace atl {

GradientExchange::GradientExchange(FlatParameters& parameters, RankCollectives& collectives,
                                   GradientOverlap overlap)
    : parameters_(parameters),
      collectives_(collectives),
      slice_(SliceOf(parameters.values().numel(), collectives.rank(), collectives.size())),
      alive_(std::make_shared<bool>(true)) {
  MakeBuckets();
  if (overlap == GradientOverlap::kYes) InstallHooks();
}

GradientExchange::~GradientExchange() { *alive_ = false; }

void GradientExchange::MakeBuckets() {
  const int64_t elements = parameters_.values().numel();
  for (int owner = collectives_.size() - 1; owner >= 0; --owner) {
    const RankSlice slice = SliceOf(elements, owner, collectives_.size());
    for (int64_t end = slice.end; end > slice.begin; end -= kBucketElements) {
      buckets_.push_back(
          {.range = {.begin = std::max(slice.begin, end - kBucketElements), .end = end}, .owner = owner});
    }
  }
  const FragmentLayout& layout = parameters_.layout();
  buckets_of_.resize(layout.slots.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const TensorSlot& slot : layout.slots) {
      const auto begin = static_cast<int64_t>(slot.offset);
      const int64_t end = begin + static_cast<int64_t>(slot.elements);
      if (end <= buckets_[i].range.begin || begin >= buckets_[i].range.end) continue;
      ++buckets_[i].tensors;
      buckets_of_[slot.tensor].push_back(i);
    }
    buckets_[i].missing = buckets_[i].tensors;
  }
}

// LibTorch 1.13 has no hook of a tensor that runs after its gradient was added. The node that adds it has
// one, which c10d's Reducer uses as well.
void GradientExchange::InstallHooks() {
  for (size_t tensor = 0; tensor < buckets_of_.size(); ++tensor) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameters_.view(tensor));
    if (accumulator == nullptr) continue;
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, tensor, alive = alive_](const torch::autograd::variable_list& outputs,
                                       const torch::autograd::variable_list& /*inputs*/) {
          if (*alive) GradientReady(tensor);
          return outputs;
        }));
    // A pointer of a kind that depends on LibTorch's version.
    hooked_.push_back(std::make_shared<std::decay_t<decltype(accumulator)>>(accumulator));
  }
}

void GradientExchange::Arm() { armed_ = true; }

void GradientExchange::GradientReady(size_t tensor) {
  if (!armed_) return;
  for (const size_t bucket : buckets_of_[tensor]) --buckets_[bucket].missing;
  StartReady();
}

// In the same order on all ranks, whatever order their gradients are complete in.
void GradientExchange::StartReady() {
  while (next_ < buckets_.size() && buckets_[next_].missing <= 0) Start(buckets_[next_++]);
}

void GradientExchange::Start(const Bucket& bucket) {
  const torch::Tensor gradients = parameters_.gradients().narrow(0, bucket.range.begin, bucket.range.size());
  pending_.push_back(collectives_.StartReduce(gradients, bucket.owner));
}

void GradientExchange::Finish() {
  while (next_ < buckets_.size()) Start(buckets_[next_++]);
  for (const auto& pending : pending_) pending->Wait();
  pending_.clear();
  armed_ = false;
  next_ = 0;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.tensors;
}

void GradientExchange::ShareParameters() {
  const torch::NoGradGuard no_grad;
  const int64_t elements = parameters_.values().numel();
  std::vector<std::unique_ptr<PendingCollective>> pending;
  for (int owner = 0; owner < collectives_.size(); ++owner) {
    const RankSlice slice = SliceOf(elements, owner, collectives_.size());
    for (int64_t begin = slice.begin; begin < slice.end; begin += kBucketElements) {
      const int64_t size = std::min(kBucketElements, slice.end - begin);
      pending.push_back(collectives_.StartBroadcast(parameters_.values().narrow(0, begin, size), owner));
    }
  }
  torch::Tensor gradients = parameters_.gradients();
  gradients.zero_();
  for (const auto& one : pending) one->Wait();
}

void GradientExchange::ShareSeenGradients() {
  if (all_seen_) return;
  std::vector<double> seen(buckets_of_.size());
  for (size_t tensor = 0; tensor < seen.size(); ++tensor) {
    seen[tensor] = parameters_.lacks_gradient(tensor) ? 0 : 1;
  }
  collectives_.Sum(seen);
  for (size_t tensor = 0; tensor < seen.size(); ++tensor) {
    if (seen[tensor] > 0) parameters_.SawGradient(tensor);
  }
  all_seen_ = parameters_.tensors_without_gradient() == 0;
}

}  // namespace atl
