#ifndef ATOLL_COMMON_INPUT_FILE_H_
#define ATOLL_COMMON_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// What an input may be beside a regular file. /proc/self/fd/N of a shell's `<(command)` is a pipe.
enum class InputKind : uint8_t { kFile, kFileOrPipe };

/// Opens an input for reading, without ever waiting: a pipe without a writer is open at once. Errors name the
/// path. FailedPrecondition for a folder, a socket, a device, and a pipe where kFile is asked for. A pipe's
/// reads do not block.
absl::StatusOr<FileDescriptor> OpenInput(const std::string& path, InputKind kind);

}  // namespace atl

#endif  // ATOLL_COMMON_INPUT_FILE_H_
