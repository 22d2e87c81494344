#include "server/publish/version_ancestry.h"

#include <cstdint>

namespace atl {

bool VersionAncestry::IsAncestorOfHead(Version version) const {
  // From the head backwards: up to `end`, versions led to it.
  Version end(UINT64_MAX);
  for (auto fork = forks_.rbegin(); fork != forks_.rend(); ++fork) {
    if (fork->version > end) continue;  // itself abandoned
    if (version >= fork->version) return version <= end;
    end = fork->source;
  }
  return version <= end;
}

}  // namespace atl
