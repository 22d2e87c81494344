#ifndef ATOLL_CORE_PAYLOAD_SCAN_H_
#define ATOLL_CORE_PAYLOAD_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/codec.h"

namespace atl {

/// Validate and PayloadNorm of a payload that arrives in pieces. Processes each piece while it is in the
/// cache, with the same blocks in the same order, so the result has the same bits. Buffers the rest of a
/// piece: at most 64 KiB and a codebook. Not thread-safe.
class PayloadScan {
 public:
  PayloadScan(const Codec& codec, uint64_t elements);

  /// The bytes that follow, cut anywhere.
  void Feed(std::span<const std::byte> bytes);

  /// The norm, after exactly EncodedSize(elements) valid bytes with finite values; else nullopt. Then run
  /// Validate and PayloadNorm on the whole payload to get the error.
  std::optional<double> norm() const;

 private:
  void Scan(std::span<const std::byte> piece, uint64_t elements);

  const Codec& codec_;
  const uint64_t elements_;
  const uint64_t grain_;  // elements: payloads may be cut at its multiples
  uint64_t seen_ = 0;     // elements
  double squares_ = 0;
  bool good_ = true;
  std::vector<std::byte> left_over_;
};

}  // namespace atl

#endif  // ATOLL_CORE_PAYLOAD_SCAN_H_
