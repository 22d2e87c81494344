#include "server/program/file_limit.h"

#include <algorithm>

namespace atl {

size_t ConnectionsWithin(size_t wanted, size_t file_limit) {
  const size_t left = file_limit > kReservedDescriptors ? (file_limit - kReservedDescriptors) / 2 : 0;
  return std::max<size_t>(16, std::min(wanted, left));
}

}  // namespace atl
