#ifndef ATOLL_CLI_OUTPUT_H_
#define ATOLL_CLI_OUTPUT_H_

#include <thread>

#include "common/file_descriptor.h"

namespace atl {

/// While this object lives, the process exits as soon as the reader of standard output goes away, as at its
/// next write (SIGPIPE): `atollctl watch | head -1`. Use it only in commands that wait and change nothing.
/// One per process.
class EndWithReader {
 public:
  EndWithReader();
  ~EndWithReader();
  EndWithReader(const EndWithReader&) = delete;
  EndWithReader& operator=(const EndWithReader&) = delete;

 private:
  FileDescriptor stop_;  // an eventfd; invalid if there is nothing to watch
  std::thread thread_;
};

}  // namespace atl

#endif  // ATOLL_CLI_OUTPUT_H_
