#ifndef ATOLL_CLI_OUTPUT_H_
#define ATOLL_CLI_OUTPUT_H_

#include <thread>

#include "absl/status/status.h"
#include "common/file_descriptor.h"

namespace atl {

/// Writes out what was printed. ResourceExhausted when standard output took not all of it (a full disk). A
/// reader that went away has what it wanted: that is OK.
absl::Status FlushOutput();

/// While it lives, the process ends as soon as the reader of standard output goes away, as it would at its
/// next write (SIGPIPE): `atollctl watch | head -1`. For commands that wait and change nothing; one that
/// changes something is not ended by its reader. One per process.
class EndWithReader {
 public:
  EndWithReader();
  ~EndWithReader();
  EndWithReader(const EndWithReader&) = delete;
  EndWithReader& operator=(const EndWithReader&) = delete;

 private:
  FileDescriptor stop_;  // an eventfd; not valid when there is nothing to watch
  std::thread thread_;
};

}  // namespace atl

#endif  // ATOLL_CLI_OUTPUT_H_
