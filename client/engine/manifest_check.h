#ifndef ATOLL_CLIENT_ENGINE_MANIFEST_CHECK_H_
#define ATOLL_CLIENT_ENGINE_MANIFEST_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ipc/messages.h"
#include "client/sync/connection.h"
#include "common/memory_limit.h"
#include "core/manifest.h"

namespace atl {

/// ATL_TENSOR_* of a tensor.
uint32_t FlagsOf(const TensorSpec& tensor);

/// The caller's tensors. InvalidArgument names the one that no run can have.
absl::StatusOr<Manifest> CallerManifest(const std::vector<ipc::Tensor>& tensors,
                                        const std::string& base_fingerprint);

/// FailedPrecondition when this process cannot hold the caller's model within its memory limit.
absl::Status CheckMemory(const Manifest& caller, const MemoryLimit& limit);

/// InvalidArgument with MANIFEST_MISMATCH when it is not the run's model: names the first difference. OK
/// while only the workers know the run's model and none has brought it: Join then checks. FailedPrecondition
/// or InvalidArgument when the run cannot average the caller's averaged tensors.
absl::Status CheckAgainstRun(const JoinedRun& run, const Manifest& caller);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_MANIFEST_CHECK_H_
