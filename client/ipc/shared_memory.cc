#include "client/ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace atl::ipc {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 46;  // a process's address space

/// Never a number of the standard streams, which are closed in some processes: any library that writes a
/// warning to its standard error would write into this memory.
int CreateAboveStandardStreams(const char* name) {
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  // This one holds its number until another is made.
  const int higher = CreateAboveStandardStreams(name);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return higher;
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, mapped_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SharedMemory::Create(const char* name) {
  descriptor_ = CreateAboveStandardStreams(name);
  return descriptor_ >= 0 && ::fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) == 0;
}

bool SharedMemory::Grow(uint64_t bytes) {
  struct stat facts = {};
  if (bytes > kMaxBytes) {
    errno = ENOMEM;
    return false;
  }
  if (::fstat(descriptor_, &facts) != 0) return false;
  if (static_cast<uint64_t>(facts.st_size) < bytes &&
      ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    return false;
  return Map(bytes);
}

bool SharedMemory::Map(uint64_t bytes) {
  if (bytes <= mapped_) return true;
  struct stat facts = {};
  if (::fstat(descriptor_, &facts) != 0 || static_cast<uint64_t>(facts.st_size) < bytes) return false;
  const auto size = static_cast<size_t>(facts.st_size);
  void* const place = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (place == MAP_FAILED) return false;
  if (data_ != nullptr) ::munmap(data_, mapped_);
  data_ = static_cast<std::byte*>(place);
  mapped_ = size;
  return true;
}

}  // namespace atl::ipc
