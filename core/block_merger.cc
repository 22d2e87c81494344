#include "core/block_merger.h"

#include <algorithm>
#include <utility>

#include "common/instruction_set.h"
#include "core/sparse_codec.h"

namespace atl {
namespace {

struct AddScaled {
  ATOLL_KERNEL void Run(float coefficient, const float* __restrict values, size_t n, float* __restrict sum) {
    for (size_t i = 0; i < n; ++i) sum[i] += coefficient * values[i];
  }
};

struct Scale {
  ATOLL_KERNEL void Run(float coefficient, size_t n, float* values) {
    for (size_t i = 0; i < n; ++i) values[i] *= coefficient;
  }
};

// Two comparisons, not one with two outcomes: so the compiler takes the minimum and maximum instructions. The
// values are finite; of two zeros of different sign both places get the one that stood low.
struct ExchangeRows {
  ATOLL_KERNEL void Run(float* __restrict low, float* __restrict high, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const float a = low[i];
      const float b = high[i];
      low[i] = b < a ? b : a;
      high[i] = a < b ? b : a;
    }
  }
};

struct Divide {
  ATOLL_KERNEL void Run(float divisor, size_t n, float* values) {
    for (size_t i = 0; i < n; ++i) values[i] /= divisor;
  }
};

struct AddWeight {
  ATOLL_KERNEL void Run(float weight, size_t n, float* weights) {
    for (size_t i = 0; i < n; ++i) weights[i] += weight;
  }
};

// Where nobody holds a value there is nothing to divide: it is zero.
struct DivideByWeights {
  ATOLL_KERNEL void Run(const float* __restrict weights, size_t n, float* __restrict values) {
    for (size_t i = 0; i < n; ++i) values[i] = weights[i] > 0 ? values[i] / weights[i] : values[i];
  }
};

}  // namespace

BlockMerger::BlockMerger(const MergePlan& plan) : plan_(plan) {
  if (!plan.trimmed) return;
  const auto n = static_cast<uint32_t>(plan.inputs.size());
  rows_.emplace(plan.inputs, plan.elements);
  network_ = SortingNetwork(n, *plan.trimmed, n - *plan.trimmed);
}

void BlockMerger::Merge(uint64_t first, std::span<float> out) {
  if (plan_.trimmed) return TrimmedMean(first, out);
  Sum(first, out);
  if (plan_.by_presence) DivideByPresence(first, out);
}

void BlockMerger::DivideByPresence(uint64_t first, std::span<float> out) {
  const std::span<float> weights = std::span(scratch_).first(out.size());
  std::ranges::fill(weights, 0.0f);
  HeldValues held;
  for (const MergeInput& input : plan_.inputs) {
    const SparseCodec* sparse = input.codec->sparse();
    if (sparse == nullptr) {
      RunKernel<AddWeight>(input.weight, weights.size(), weights.data());
      continue;
    }
    static_assert(SparseCodec::kBlock == kChunkAlignment, "one block of the merge is one of the codec");
    sparse->ReadBlock(input.payload, plan_.elements, first, held);
    for (size_t i = 0; i < held.count && held.positions[i] < weights.size(); ++i) {
      weights[held.positions[i]] += input.weight;
    }
  }
  RunKernel<DivideByWeights>(weights.data(), out.size(), out.data());
}

void BlockMerger::Sum(uint64_t first, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  const auto segment = std::ranges::upper_bound(plan_.segments, first, {}, &MergeSegment::end);
  if (segment == plan_.segments.end()) return;
  if (segment->end < first + out.size()) {
    return SumAcrossSegments(first, static_cast<size_t>(segment - plan_.segments.begin()), out);
  }
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    const MergeInput& input = plan_.inputs[i];
    input.codec->AccumulateRange(input.payload, plan_.elements, first, segment->coefficients[i], out);
  }
}

void BlockMerger::SumAcrossSegments(uint64_t first, size_t segment, std::span<float> out) {
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    const MergeInput& input = plan_.inputs[i];
    input.codec->DecodeRange(input.payload, plan_.elements, first, std::span(scratch_).first(out.size()));
    size_t s = segment;
    for (uint64_t done = 0; done < out.size(); ++s) {
      const uint64_t end = std::min<uint64_t>(plan_.segments[s].end - first, out.size());
      RunKernel<AddScaled>(plan_.segments[s].coefficients[i], scratch_.data() + done, end - done,
                           out.data() + done);
      done = end;
    }
  }
}

void BlockMerger::TrimmedMean(uint64_t first, std::span<float> out) {
  for (uint64_t done = 0; done < out.size(); done += rows_->width()) {
    const uint64_t n = std::min<uint64_t>(rows_->width(), out.size() - done);
    rows_->Load(first + done, n);
    SortRows(n);
    MeanOfRows(out.subspan(done, n));
  }
}

void BlockMerger::SortRows(uint64_t n) {
  const std::vector<float>& scales = plan_.segments.front().coefficients;
  for (size_t i = 0; i < rows_->rows(); ++i) {
    if (scales[i] != 1.0f) RunKernel<Scale>(scales[i], n, rows_->row(i));
  }
  for (const Exchange& exchange : network_) {
    RunKernel<ExchangeRows>(rows_->row(exchange.low), rows_->row(exchange.high), n);
  }
}

void BlockMerger::MeanOfRows(std::span<float> out) const {
  const size_t begin = *plan_.trimmed;
  const size_t end = rows_->rows() - begin;
  std::copy_n(rows_->row(begin), out.size(), out.data());
  for (size_t i = begin + 1; i < end; ++i) {
    RunKernel<AddScaled>(1.0f, std::as_const(*rows_).row(i), out.size(), out.data());
  }
  if (end - begin == 1) return;
  RunKernel<Divide>(static_cast<float>(end - begin), out.size(), out.data());
}

void MergeRange(const MergePlan& plan, uint64_t first, std::span<float> out) {
  BlockMerger merger(plan);
  for (uint64_t done = 0; done < out.size(); done += kChunkAlignment) {
    merger.Merge(first + done, out.subspan(done, std::min<uint64_t>(kChunkAlignment, out.size() - done)));
  }
}

}  // namespace atl
