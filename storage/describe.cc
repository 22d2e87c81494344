#include "storage/describe.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace atl {

std::string Describe(const ContributionKey& key) {
  return absl::StrFormat("contribution of worker %s to fragment %d on base %d (sequence %d, epoch %016x)",
                         absl::CHexEscape(key.worker), key.fragment.value(), key.base.value(), key.sequence,
                         key.epoch.value());
}

std::string Describe(FragmentId fragment, Version version) {
  return absl::StrFormat("fragment %d version %d", fragment.value(), version.value());
}

}  // namespace atl
