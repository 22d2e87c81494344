#include "core/payload_scan.h"

#include <algorithm>
#include <cmath>

#include "core/fragment_plan.h"
#include "core/payload_squares.h"

namespace atl {
namespace {

/// A codec that spends the same on every block has its blocks one after the other (docs/reference/codecs.md),
/// and can be cut at each; the others at pieces only.
uint64_t GrainOf(const Codec& codec) {
  constexpr uint64_t kBlocks = kPayloadPiece / kChunkAlignment;
  const bool even = codec.EncodedSize(kPayloadPiece) == kBlocks * codec.EncodedSize(kChunkAlignment);
  return even ? kChunkAlignment : kPayloadPiece;
}

}  // namespace

PayloadScan::PayloadScan(const Codec& codec, uint64_t elements)
    : codec_(codec), elements_(elements), grain_(GrainOf(codec)) {}

void PayloadScan::Feed(std::span<const std::byte> bytes) {
  while (good_ && !bytes.empty()) {
    const uint64_t left = elements_ - seen_;
    const uint64_t next = std::min(grain_, left);
    const size_t unit = codec_.EncodedSize(next);
    if (unit == 0) {  // nothing more is to come
      good_ = false;
      return;
    }
    if (left_over_.empty() && bytes.size() >= unit) {
      const uint64_t units = next == grain_ ? std::min<uint64_t>(bytes.size() / unit, left / grain_) : 1;
      Scan(bytes.first(units * unit), units * next);
      bytes = bytes.subspan(units * unit);
      continue;
    }
    const auto more = bytes.first(std::min(unit - left_over_.size(), bytes.size()));
    left_over_.insert(left_over_.end(), more.begin(), more.end());
    bytes = bytes.subspan(more.size());
    if (left_over_.size() < unit) return;
    Scan(left_over_, next);
    left_over_.clear();
  }
}

void PayloadScan::Scan(std::span<const std::byte> piece, uint64_t elements) {
  good_ = codec_.Validate(piece, elements).ok() && AddSquares(codec_, piece, elements, squares_).ok();
  seen_ += elements;
}

std::optional<double> PayloadScan::norm() const {
  if (!good_ || seen_ != elements_ || !left_over_.empty()) return std::nullopt;
  return std::sqrt(squares_);
}

}  // namespace atl
