#include "core/block_merger.h"

#include <algorithm>

namespace atoll {
namespace {

// The loops carry no dependence between elements, and rows do not overlap, which `ivdep` tells the
// vectoriser.

void AddScaled(float coefficient, const float* values, size_t n, float* sum) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) sum[i] += coefficient * values[i];
}

void Scale(float coefficient, size_t n, float* values) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) values[i] *= coefficient;
}

// Two comparisons, not one with two outcomes: so the compiler takes the minimum and maximum instructions. The
// values are finite; of two zeros of different sign both places get the one that stood low.
void ExchangeRows(float* low, float* high, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float a = low[i];
    const float b = high[i];
    low[i] = b < a ? b : a;
    high[i] = a < b ? b : a;
  }
}

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
    input.codec->DecodeRange(input.payload, plan_.elements, first, std::span(decoded_).first(out.size()));
    size_t s = segment;
    for (uint64_t done = 0; done < out.size(); ++s) {
      const uint64_t end = std::min<uint64_t>(plan_.segments[s].end - first, out.size());
      AddScaled(plan_.segments[s].coefficients[i], decoded_.data() + done, end - done, out.data() + done);
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
    if (scales[i] != 1.0f) Scale(scales[i], n, rows_->row(i));
  }
  for (const Exchange& exchange : network_) {
    ExchangeRows(rows_->row(exchange.low), rows_->row(exchange.high), n);
  }
}

void BlockMerger::MeanOfRows(std::span<float> out) const {
  const size_t begin = *plan_.trimmed;
  const size_t end = rows_->rows() - begin;
  std::copy_n(rows_->row(begin), out.size(), out.data());
  for (size_t i = begin + 1; i < end; ++i) AddScaled(1.0f, rows_->row(i), out.size(), out.data());
  if (end - begin == 1) return;
  const auto count = static_cast<float>(end - begin);
#pragma GCC ivdep
  for (size_t i = 0; i < out.size(); ++i) out[i] /= count;
}

void MergeRange(const MergePlan& plan, uint64_t first, std::span<float> out) {
  BlockMerger merger(plan);
  for (uint64_t done = 0; done < out.size(); done += kChunkAlignment) {
    merger.Merge(first + done, out.subspan(done, std::min<uint64_t>(kChunkAlignment, out.size() - done)));
  }
}

}  // namespace atoll
