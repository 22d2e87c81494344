#ifndef ATOLL_CLIENT_ENGINE_STATUS_CODE_H_
#define ATOLL_CLIENT_ENGINE_STATUS_CODE_H_

#include "absl/status/status.h"
#include "atoll/client.h"

namespace atl {

/// The code that the caller sees. ATL_INTERNAL says that the engine ended unexpectedly, so a defect that the
/// engine reports itself is ATL_UNKNOWN.
atl_code CodeForCaller(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_STATUS_CODE_H_
