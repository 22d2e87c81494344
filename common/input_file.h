#ifndef ATOLL_COMMON_INPUT_FILE_H_
#define ATOLL_COMMON_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// What an input may be other than a regular file. /proc/self/fd/N of a shell's `<(command)` is a pipe.
enum class InputKind : uint8_t { kFile, kFileOrPipe };

/// Opens an input for reading and never blocks, not even for a pipe without a writer. Errors name the path.
/// FailedPrecondition for a folder, a socket, a device, and for a pipe if kFile is given. Reads from a pipe
/// do not block.
absl::StatusOr<FileDescriptor> OpenInput(const std::string& path, InputKind kind);

}  // namespace atl

#endif  // ATOLL_COMMON_INPUT_FILE_H_
