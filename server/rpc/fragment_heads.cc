#include "server/rpc/fragment_heads.h"

#include <algorithm>

namespace atl {

void FragmentHeads::Saw(FragmentId fragment, Version version) {
  MutexLock lock(&mutex_);
  Version& newest = newest_[fragment];
  newest = std::max(newest, version);
}

bool FragmentHeads::Outdated(FragmentId fragment, Version version) const {
  return Newest(fragment).value() > version.value() + 1;
}

Version FragmentHeads::Newest(FragmentId fragment) const {
  MutexLock lock(&mutex_);
  const auto it = newest_.find(fragment);
  return it == newest_.end() ? Version(0) : it->second;
}

}  // namespace atl
