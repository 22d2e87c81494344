#ifndef ATOLL_TESTS_FUZZ_MEMORY_FILE_H_
#define ATOLL_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {

/// A file that is only in memory, for decoders that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> contents) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
    ATOLL_FUZZ_REQUIRE(fd_ >= 0);
    const ssize_t written = ::write(fd_, contents.data(), contents.size());
    ATOLL_FUZZ_REQUIRE(written == static_cast<ssize_t>(contents.size()));
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

}  // namespace atl::fuzz

#endif  // ATOLL_TESTS_FUZZ_MEMORY_FILE_H_
