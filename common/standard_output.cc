#include "common/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <system_error>

namespace atl {

absl::Status FlushStandardOutput() {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || errno == EPIPE) return absl::OkStatus();
  const std::string why = errno == 0 ? "is the disk full?" : std::generic_category().message(errno);
  return absl::ResourceExhaustedError("standard output was not written completely: " + why);
}

}  // namespace atl
