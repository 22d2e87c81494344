#include "core/sorting_network.h"

#include <algorithm>
#include <bit>

namespace atl {
namespace {

std::vector<Exchange> MergeExchange(uint32_t n) {
  std::vector<Exchange> network;
  const uint32_t top = std::bit_ceil(n) / 2;
  for (uint32_t p = top; p > 0; p /= 2) {
    uint32_t q = top;
    uint32_t r = 0;
    for (uint32_t distance = p;; distance = q - p, q /= 2, r = p) {
      for (uint32_t i = 0; i + distance < n; ++i) {
        if ((i & p) == r) network.push_back({.low = i, .high = i + distance});
      }
      if (q == p) break;
    }
  }
  return network;
}

}  // namespace

std::vector<Exchange> SortingNetwork(uint32_t n, uint32_t begin, uint32_t end) {
  if (n < 2) return {};
  std::vector<Exchange> network = MergeExchange(n);
  // From the end: an exchange matters when something that matters reads one of its outputs.
  std::vector<bool> read(n, false);
  for (uint32_t i = begin; i < std::min(end, n); ++i) read[i] = true;
  std::vector<Exchange> needed;
  for (auto it = network.rbegin(); it != network.rend(); ++it) {
    if (!read[it->low] && !read[it->high]) continue;
    read[it->low] = read[it->high] = true;
    needed.push_back(*it);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

}  // namespace atl
