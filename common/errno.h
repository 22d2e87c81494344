#ifndef ATOLL_COMMON_ERRNO_H_
#define ATOLL_COMMON_ERRNO_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// The only translation of errno to a status: "<doing>: <system's text>". `doing` names the file or the
/// socket. ENOSPC, EDQUOT, EMFILE, ENOMEM: ResourceExhausted (for a full disk, the message also says what to
/// do). ENOENT: NotFound. EEXIST: AlreadyExists. EACCES, EPERM, EROFS: PermissionDenied. EADDRINUSE,
/// ECONNREFUSED and kin: Unavailable. EINVAL, ENAMETOOLONG: InvalidArgument. ENOTDIR, EISDIR, ELOOP, ENXIO,
/// ENOTEMPTY, EBUSY: FailedPrecondition. EIO and kin: DataLoss. The rest: Internal.
absl::Status ErrnoToStatus(int error_number, std::string_view doing);

/// The error number of a status made by ErrnoToStatus; nullopt for any other status.
std::optional<int> ErrnoOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_COMMON_ERRNO_H_
