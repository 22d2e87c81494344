#ifndef ATOLL_SERVER_RPC_FRAGMENT_HEADS_H_
#define ATOLL_SERVER_RPC_FRAGMENT_HEADS_H_

#include <map>

#include "common/ids.h"
#include "common/mutex.h"

namespace atl {

/// The newest version of each fragment that any answer has named (heartbeats name all of them). A pull that
/// is more than one behind is ended, so that its snapshot can be freed. Versions never go back, restores
/// included, so the largest is the newest. Thread-safe.
class FragmentHeads {
 public:
  void Saw(FragmentId fragment, Version version);
  /// `version` is more than one behind the newest.
  bool Outdated(FragmentId fragment, Version version) const;
  /// 0 while none was seen.
  Version Newest(FragmentId fragment) const;

 private:
  mutable Mutex mutex_;
  std::map<FragmentId, Version> newest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_FRAGMENT_HEADS_H_
