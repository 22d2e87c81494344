#ifndef ATOLL_CORE_CODEBOOK_LOOKUP_H_
#define ATOLL_CORE_CODEBOOK_LOOKUP_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace atl {

/// The value of each of 256 codes.
using Codebook = std::array<float, 256>;

/// out[i] = codebook[codes[i]]. The bits are the same on every instruction set.
void LookUpCodes(const Codebook& codebook, const uint8_t* codes, size_t n, float* out);

/// out[i] += weight * codebook[codes[i]], one rounded multiplication and one rounded addition.
void AddLookedUp(const Codebook& codebook, const uint8_t* codes, float weight, size_t n, float* out);

}  // namespace atl

#endif  // ATOLL_CORE_CODEBOOK_LOOKUP_H_
