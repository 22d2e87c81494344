#ifndef ATOLL_CORE_NORM_PASS_H_
#define ATOLL_CORE_NORM_PASS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/decoded_rows.h"
#include "core/merge.h"

namespace atl {

/// L2 norms over stretches of the contributions, for the merges that need them: of each contribution, of a
/// combination of them, of each one's distance from a combination. Float64 throughout.
///
/// The vector is measured in pieces of kNormPiece values, which may run on different threads; the order of
/// summation is fixed by the stretches, the pieces and DecodedRows::width(), so the result has the same bits
/// on any number of threads.
class NormPass {
 public:
  /// Values [begin, end) of the flat vector, multiples of kSlotAlignment.
  struct Stretch {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  enum class Quantity : uint8_t {
    kNorms,        // |x_i| of every input i
    kCombination,  // |v|, v = sum of combination_j * x_j
    kDistances,    // |scale_i * x_i - v| of every input i
  };

  struct Request {
    Quantity quantity = Quantity::kNorms;
    std::vector<std::vector<double>> combinations =
        {};                           // per stretch, one coefficient per input; kNorms: none
    std::vector<double> scales = {};  // one per input; kDistances only
  };

  /// `inputs` outlives it; the stretches are ascending and do not overlap.
  NormPass(std::span<const MergeInput> inputs, uint64_t elements, std::vector<Stretch> stretches);

  /// Begins a pass. Then Measure every piece once, then Answers.
  void Begin(Request request);

  size_t pieces() const { return (elements_ + kNormPiece - 1) / kNormPiece; }

  /// Safe to call for different pieces on different threads.
  void Measure(size_t piece);

  /// Norms by stretch, then by input (kCombination: one each).
  std::vector<std::vector<double>> Norms() const;

  static constexpr uint64_t kNormPiece = uint64_t{1} << 16;

 private:
  struct Part {  // of a stretch, within one piece
    size_t stretch;
    uint64_t begin;
    uint64_t end;
  };

  size_t norms_per_part() const { return request_.quantity == Quantity::kCombination ? 1 : inputs_.size(); }
  void MeasureRows(const DecodedRows& rows, uint64_t offset, uint64_t n, size_t stretch,
                   std::vector<double>& combined, std::span<double> squares) const;

  const std::span<const MergeInput> inputs_;
  const uint64_t elements_;
  const std::vector<Stretch> stretches_;
  std::vector<Part> parts_;  // ascending
  Request request_;
  std::vector<double> squares_;  // answers() of each part
};

}  // namespace atl

#endif  // ATOLL_CORE_NORM_PASS_H_
