#include "core/norm_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/deterministic_sum.h"
#include "core/fragment_plan.h"

namespace atl {

static_assert(NormPass::kNormPiece % kChunkAlignment == 0, "rows are loaded at multiples of their width");

NormPass::NormPass(std::span<const MergeInput> inputs, uint64_t elements, std::vector<Stretch> stretches)
    : inputs_(inputs), elements_(elements), stretches_(std::move(stretches)) {
  for (size_t s = 0; s < stretches_.size(); ++s) {
    for (uint64_t begin = stretches_[s].begin; begin < stretches_[s].end;) {
      const uint64_t end = std::min(stretches_[s].end, (begin / kNormPiece + 1) * kNormPiece);
      parts_.push_back({.stretch = s, .begin = begin, .end = end});
      begin = end;
    }
  }
}

void NormPass::Begin(Request request) {
  request_ = std::move(request);
  squares_.assign(parts_.size() * norms_per_part(), 0.0);
}

void NormPass::Measure(size_t piece) {
  const uint64_t begin = piece * kNormPiece;
  const uint64_t end = std::min(begin + kNormPiece, elements_);
  auto part = std::ranges::upper_bound(parts_, begin, {}, &Part::end);
  if (part == parts_.end() || part->begin >= end) return;  // nothing to measure here
  DecodedRows rows(inputs_, elements_);
  std::vector<double> combined(rows.width());
  for (uint64_t first = begin; first < end; first += rows.width()) {
    const uint64_t last = std::min(first + rows.width(), end);
    while (part != parts_.end() && part->end <= first) ++part;
    if (part == parts_.end()) return;
    if (part->begin >= last) continue;
    rows.Load(first, last - first);
    for (auto at = part; at != parts_.end() && at->begin < last; ++at) {
      const uint64_t from = std::max(at->begin, first);
      const auto index = static_cast<size_t>(at - parts_.begin());
      MeasureRows(rows, from - first, std::min(at->end, last) - from, at->stretch, combined,
                  std::span(squares_).subspan(index * norms_per_part(), norms_per_part()));
    }
  }
}

void NormPass::MeasureRows(const DecodedRows& rows, uint64_t offset, uint64_t n, size_t stretch,
                           std::vector<double>& combined, std::span<double> squares) const {
  if (request_.quantity == Quantity::kNorms) {
    for (size_t i = 0; i < rows.rows(); ++i) {
      const float* x = rows.row(i) + offset;
      squares[i] += DeterministicSumOfSquares(n, [x](size_t k) { return static_cast<double>(x[k]); });
    }
    return;
  }
  double* const v = combined.data();
  std::fill_n(v, n, 0.0);
  for (size_t i = 0; i < rows.rows(); ++i) {
    const double coefficient = request_.combinations[stretch][i];
    const float* x = rows.row(i) + offset;
    for (uint64_t k = 0; k < n; ++k) v[k] += coefficient * static_cast<double>(x[k]);
  }
  if (request_.quantity == Quantity::kCombination) {
    squares[0] += DeterministicSumOfSquares(n, [v](size_t k) { return v[k]; });
    return;
  }
  for (size_t i = 0; i < rows.rows(); ++i) {
    const double scale = request_.scales[i];
    const float* x = rows.row(i) + offset;
    squares[i] +=
        DeterministicSumOfSquares(n, [=](size_t k) { return scale * static_cast<double>(x[k]) - v[k]; });
  }
}

std::vector<std::vector<double>> NormPass::Norms() const {
  std::vector<std::vector<double>> norms(stretches_.size(), std::vector<double>(norms_per_part(), 0.0));
  for (size_t p = 0; p < parts_.size(); ++p) {
    std::vector<double>& sums = norms[parts_[p].stretch];
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += squares_[p * norms_per_part() + i];
  }
  for (std::vector<double>& sums : norms) {
    std::ranges::transform(sums, sums.begin(), [](double squares) { return std::sqrt(squares); });
  }
  return norms;
}

}  // namespace atl
