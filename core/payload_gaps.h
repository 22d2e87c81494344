#ifndef ATOLL_CORE_PAYLOAD_GAPS_H_
#define ATOLL_CORE_PAYLOAD_GAPS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"

namespace atl {

/// Checks that a validated payload decodes to zero between the tensors of its fragment and behind the last
/// one. No export shows those values, but they share blocks, scales and codebooks with the tensors beside
/// them. InvalidArgument names the first value other than zero. Decodes only blocks with a gap.
absl::Status CheckGaps(const Codec& codec, std::span<const std::byte> payload, const FragmentLayout& layout);

/// Sets the values between the tensors and behind the last one to zero. `values`: the fragment's vector.
void ClearGaps(const FragmentLayout& layout, std::span<float> values);

}  // namespace atl

#endif  // ATOLL_CORE_PAYLOAD_GAPS_H_
