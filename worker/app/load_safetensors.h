#ifndef ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_
#define ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_

#include <string>

#include "absl/status/status.h"
#include "client/sync/replica.h"
#include "core/hf/layout.h"
#include "core/model_options.h"

namespace atl {

/// Puts the tensors of a file or a folder (storage/weights/model_files.h) into the replica. Every tensor of
/// the model must be there under the names of its table (core/hf/layout.h), as F32, F16 or BF16 in its shape;
/// others are not an error. A folder's config.json must not contradict the model. InvalidArgument names the
/// file and the tensor; the replica is then unchanged. Needs 4 bytes of memory per parameter besides the
/// mapped files.
absl::Status LoadSafetensors(const std::string& path, const HfLayout& layout, Replica& replica);

/// The table of the replica's model.
HfLayout LayoutOf(const ModelOptions& model, const Replica& replica);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_LOAD_SAFETENSORS_H_
