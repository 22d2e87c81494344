#ifndef ATOLL_COMMON_ERRNO_H_
#define ATOLL_COMMON_ERRNO_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// The one translation of errno. "<doing>: <system's text>"; `doing` names the file or the socket.
/// ENOSPC, EDQUOT, EMFILE, ENOMEM: ResourceExhausted (a full disk also says so in words). ENOENT: NotFound.
/// EEXIST: AlreadyExists. EACCES, EPERM, EROFS: PermissionDenied. EADDRINUSE, ECONNREFUSED and kin:
/// Unavailable. EINVAL, ENAMETOOLONG: InvalidArgument. ENOTDIR, EISDIR, ELOOP, ENXIO, ENOTEMPTY, EBUSY:
/// FailedPrecondition. EIO and kin: DataLoss. The rest: Internal.
absl::Status ErrnoToStatus(int error_number, std::string_view doing);

/// The error number of a status that ErrnoToStatus made; nullopt for any other.
std::optional<int> ErrnoOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_COMMON_ERRNO_H_
