#ifndef ATOLL_CORE_ONE_VERSION_H_
#define ATOLL_CORE_ONE_VERSION_H_

#include <cstddef>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace atl {

/// Pulls fragment number `fragment` once more, at a version above `after`, and replaces what was pulled of it
/// before. Returns that version; none: there is no such version yet.
using PullAgain = absl::FunctionRef<absl::StatusOr<std::optional<Version>>(size_t fragment, Version after)>;

/// For a reader of a blocking run: it publishes all fragments at one version, but they are pulled one after
/// the other. `versions` holds what was pulled, one entry for each fragment. Pulls those that are behind the
/// newest until all are equal; Unavailable when they still differ after five passes.
absl::Status PullUntilOneVersion(std::span<Version> versions, PullAgain pull);

}  // namespace atl

#endif  // ATOLL_CORE_ONE_VERSION_H_
