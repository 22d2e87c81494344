#include "core/foreign_name.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/did_you_mean.h"
#include "common/printable.h"

namespace atl {
namespace {

constexpr size_t kLongest = 120;

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string ForeignName(std::string_view name) {
  if (name.size() <= kLongest) return Printable(name);
  size_t end = kLongest;
  while (end > 0 && ContinuesCharacter(name[end])) --end;
  return Printable(name.substr(0, end)) + "...";
}

std::string NearName(std::string_view name, const std::vector<std::string>& candidates) {
  const size_t reach = name.size() / 3 + 1;
  std::vector<std::string> similar;
  std::ranges::copy_if(candidates, std::back_inserter(similar), [&](const std::string& candidate) {
    return candidate.size() + reach >= name.size() && candidate.size() <= name.size() + reach;
  });
  const std::string near = DidYouMean(name, similar);
  return near.empty() ? "" : absl::StrCat("; did you mean '", ForeignName(near), "'?");
}

}  // namespace atl
