#ifndef ATOLL_SERVER_ADMIN_ADMIN_LOCKS_H_
#define ATOLL_SERVER_ADMIN_ADMIN_LOCKS_H_

#include "common/mutex.h"

namespace atl {

/// Actions of operators exclude each other, so that what was checked still holds when it is done.
struct AdminLocks {
  /// Held over what changes the workers that are launched, the launcher's work included, so that what is
  /// recorded of them and what the launcher was asked for come in the same call.
  Mutex launching ABSL_ACQUIRED_BEFORE(state);
  Mutex state;  // held over the disk's work, never over the launcher's
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_ADMIN_LOCKS_H_
