#ifndef ATOLL_COMMON_OUTPUT_TARGET_H_
#define ATOLL_COMMON_OUTPUT_TARGET_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

/// The object that receives the contents of a file which a caller named.
struct OutputTarget {
  std::string path;
  bool stream = false;  // an open descriptor, or a pipe or a device behind a link: written to, never replaced
  int descriptor = -1;  // of this process, behind /dev/stdout or /proc/self/fd/N; -1: opened by its path
};

/// Follows the symbolic links of `path`, for every writer that replaces files. A writer that renames a new
/// file onto a link would replace the link and not its target. `path` of the result is not a link, unless
/// `stream`.
///
/// - A file, a folder or a free name: the name itself.
/// - A link to one of these: the name at its end. A link without a target gives the free name, or NotFound
///   if the folder of that name does not exist.
/// - A descriptor of this process, such as /dev/stdout, /dev/fd/N or a link to one: `path` itself with
/// `stream`
///   and `descriptor`, also for a file. The shell opened that file, perhaps to append (`>>FILE`).
///   FailedPrecondition if it is open for reading only.
/// - A link to another pipe or character device: `path` itself with `stream`.
/// - A device, a pipe or a socket by its own name: FailedPrecondition, because replacing it would remove it:
///   as root, for example, /dev/null of the whole machine. The same for a link to a socket or a block device,
///   and for a link to another process's open file that has no name any more.
absl::StatusOr<OutputTarget> ResolveOutput(const std::string& path);

/// Whether writes to `path` reach a stream: a line for people would then stand among the contents.
bool IsStream(const std::string& path);

/// Writes to a stream: at the position of its descriptor, or at its end if it was opened to append. Waits for
/// a reader that is slow; FailedPrecondition for a pipe that nobody reads.
absl::Status WriteToStream(const OutputTarget& target, std::string_view contents);

}  // namespace atl

#endif  // ATOLL_COMMON_OUTPUT_TARGET_H_
