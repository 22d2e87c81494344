#include "tokenizer/unicode_classes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace atl {
namespace {

#include "tokenizer/unicode_runs.inc"

std::vector<uint8_t> Expand() {
  std::vector<uint8_t> classes(kCodePoints);
  for (size_t run = 0; run < std::size(kClassRuns); ++run) {
    const size_t first = kClassRuns[run] >> 8;
    const size_t end = run + 1 < std::size(kClassRuns) ? kClassRuns[run + 1] >> 8 : kCodePoints;
    std::fill(classes.begin() + static_cast<ptrdiff_t>(first), classes.begin() + static_cast<ptrdiff_t>(end),
              static_cast<uint8_t>(kClassRuns[run] & 0xff));
  }
  return classes;
}

}  // namespace

const uint8_t* UnicodeClasses() {
  static const std::vector<uint8_t> classes = Expand();
  return classes.data();
}

}  // namespace atl
