#include "common/errno.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace atl {
namespace {

constexpr char kErrnoUrl[] = "atoll.errno";

absl::StatusCode CodeFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EAGAIN:
      return absl::StatusCode::kUnavailable;
    case EINVAL:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
    case EXDEV:
    case ELOOP:
    case ENXIO:
      return absl::StatusCode::kFailedPrecondition;
    case EIO:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kInternal;
  }
}

const char* AdviceFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return " (the disk is full: free some space and retry)";
    case EFBIG:
      return " (raise the limit of file sizes, ulimit -f)";
    case EMFILE:
    case ENFILE:
      return " (raise the limit of open files, ulimit -n)";
    case EROFS:
      return " (mounted read-only)";
    default:
      return "";
  }
}

}  // namespace

absl::Status ErrnoToStatus(int error_number, std::string_view doing) {
  absl::Status status(CodeFor(error_number),
                      absl::StrCat(std::string(doing), ": ", std::generic_category().message(error_number),
                                   AdviceFor(error_number)));
  status.SetPayload(kErrnoUrl, absl::Cord(absl::StrCat(error_number)));
  return status;
}

std::optional<int> ErrnoOf(const absl::Status& status) {
  int error_number = 0;
  const auto payload = status.GetPayload(kErrnoUrl);
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &error_number)) return std::nullopt;
  return error_number;
}

}  // namespace atl
