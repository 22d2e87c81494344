#ifndef ATOLL_SERVER_ADMIN_ROUND_LIST_H_
#define ATOLL_SERVER_ADMIN_ROUND_LIST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/admin/admin_control.h"
#include "server/coordinator_context.h"

namespace atl {

/// AdminControl::ListRounds, from the records on disk.
absl::StatusOr<RoundListView> RoundsOf(const CoordinatorContext& context, FragmentId fragment, Version after,
                                       uint32_t limit);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_ROUND_LIST_H_
