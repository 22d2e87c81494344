#ifndef ATOLL_SERVER_ADMIN_STORED_CHOICE_H_
#define ATOLL_SERVER_ADMIN_STORED_CHOICE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/run_options.h"

namespace atl {

/// The versions of a fragment at one moment.
struct StoredFragment {
  std::vector<Version> stored;  // whose tensors are on disk, ascending, never empty
  Version head;                 // the newest that was published
};

/// Chooses the version of each fragment that a reader of stored tensors gets: `asked`, or the newest one of
/// the run. Without `asked`, the fragments of a blocking run have the same version, and those of an
/// overlapped run each their newest. Pure.
///
/// NotFound: `asked` is not kept any more, or was not published yet; the message names the stored versions.
/// Unavailable: the version was published and is about to be stored; look again soon.
absl::StatusOr<std::vector<Version>> ChooseStored(const std::vector<StoredFragment>& fragments, SyncMode mode,
                                                  std::optional<Version> asked);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_STORED_CHOICE_H_
