#ifndef ATOLL_CORE_SORTING_NETWORK_H_
#define ATOLL_CORE_SORTING_NETWORK_H_

#include <cstdint>
#include <vector>

namespace atl {

/// Puts the smaller of two values at `low` and the larger at `high`.
struct Exchange {
  uint32_t low = 0;
  uint32_t high = 0;
};

/// Exchanges that, carried out in order, sort n values ascending as far as positions [begin, end) need it:
/// those hold what a full sort would put there, the others hold the rest in any order. Which values are
/// exchanged does not depend on the values, so that whole rows of them are sorted at once with vector
/// instructions. Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, section 5.2.2,
/// algorithm M): about n (log2 n)^2 / 4 exchanges.
std::vector<Exchange> SortingNetwork(uint32_t n, uint32_t begin, uint32_t end);

}  // namespace atl

#endif  // ATOLL_CORE_SORTING_NETWORK_H_
