#ifndef ATOLL_SERVER_ADMIN_CHECKPOINT_NAMES_H_
#define ATOLL_SERVER_ADMIN_CHECKPOINT_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "storage/run_store.h"

namespace atl {

/// The status of a call about the checkpoint `name`. If there is no such checkpoint, the message also names a
/// similar one and the newest ones. Other statuses stay as they are.
absl::Status NameCheckpoints(RunStore& store, const std::string& name, const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_CHECKPOINT_NAMES_H_
