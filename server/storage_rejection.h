#ifndef ATOLL_SERVER_STORAGE_REJECTION_H_
#define ATOLL_SERVER_STORAGE_REJECTION_H_

#include "absl/status/status.h"
#include "common/rejection_reason.h"

namespace atl {

/// What a client is told of a failure of the store. A full disk is STORAGE_FULL, trouble with the
/// coordinator's files is STORAGE_FAILING (no client can do anything about it, so it waits), an upload that
/// is still held by an earlier stream may be retried: these three with a retry delay. A refusal by the rules
/// of the store (FailedPrecondition, AlreadyExists, InvalidArgument without an errno) stays what it is.
absl::Status ToRejection(const absl::Status& storage_status);

/// STORAGE_FULL or STORAGE_FAILING: the client repeats the call by itself, an operator has to mend the disk.
bool OfStorage(RejectionReason reason);

}  // namespace atl

#endif  // ATOLL_SERVER_STORAGE_REJECTION_H_
