#include "server/launch/wanted_workers.h"

#include <algorithm>
#include <iterator>

namespace atl {

std::set<uint32_t> ChooseNumbers(std::set<uint32_t> wanted, const std::set<uint32_t>& drained,
                                 const std::set<uint32_t>& strangers, uint32_t target) {
  for (uint32_t number = 0; wanted.size() < target; ++number) {
    if (!drained.contains(number)) wanted.insert(number);
  }
  std::set<uint32_t> first_to_go;
  std::ranges::set_intersection(wanted, strangers, std::inserter(first_to_go, first_to_go.end()));
  while (wanted.size() > target) {
    std::set<uint32_t>& from = first_to_go.empty() ? wanted : first_to_go;
    const uint32_t gone = *from.rbegin();
    first_to_go.erase(gone);
    wanted.erase(gone);
  }
  return wanted;
}

}  // namespace atl
