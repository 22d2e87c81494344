#ifndef ATOLL_WORKER_DATA_INPUT_INPUT_LIST_H_
#define ATOLL_WORKER_DATA_INPUT_INPUT_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// One file to read. Size and time tell whether it is still the same file.
struct InputFile {
  std::string path;    // "-": the standard input
  uint64_t bytes = 0;  // 0: not known (a pipe)
  int64_t modified_ns = 0;
  bool regular = false;  // can be read again
};

/// The files that the names stand for, in order. A folder stands for the files in it and below it, in the
/// order of their paths; hidden ones (.name) are left out. A name that does not exist and has *, ? or [ is a
/// pattern. NotFound naming what does not exist, a pattern without a match, and a folder without a file;
/// InvalidArgument for a file that is named twice, and for no name at all.
absl::StatusOr<std::vector<InputFile>> ListInputs(const std::vector<std::string>& names);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_INPUT_LIST_H_
