#ifndef ATOLL_SERVER_PUBLISH_VERSION_ANCESTRY_H_
#define ATOLL_SERVER_PUBLISH_VERSION_ANCESTRY_H_

#include <vector>

#include "common/ids.h"

namespace atl {

/// Which versions of a fragment led to its head. A restore makes an older version the head again, under a new
/// number: the versions between are abandoned. Pure state, not thread-safe.
class VersionAncestry {
 public:
  /// The contents of `source` are `version` now. Ascending versions.
  void Restored(Version version, Version source) { forks_.push_back({version, source}); }
  bool IsAncestorOfHead(Version version) const;

 private:
  struct Fork {
    Version version;
    Version source;
  };
  std::vector<Fork> forks_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_VERSION_ANCESTRY_H_
