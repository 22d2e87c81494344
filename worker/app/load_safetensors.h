#ifndef ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_
#define ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_

#include <string>

#include "absl/status/status.h"
#include "client/sync/replica.h"

namespace atl {

/// Puts the tensors of a safetensors file into the replica. The file must hold every tensor of the replica's
/// manifest as F32 in its shape; tensors that the model does not have are not an error. InvalidArgument names
/// the file and the tensor; the replica is then unchanged. Needs 4 bytes of memory per parameter besides the
/// mapped file.
absl::Status LoadSafetensors(const std::string& path, Replica& replica);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_
