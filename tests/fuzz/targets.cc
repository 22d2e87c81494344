#include "tests/fuzz/targets.h"

#include <algorithm>

namespace atl::fuzz {

const Target* FindTarget(std::string_view name) {
  const std::span<const Target> targets = Targets();
  const auto found = std::ranges::find(targets, name, &Target::name);
  return found == targets.end() ? nullptr : &*found;
}

}  // namespace atl::fuzz
