#include "common/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/file_descriptor.h"
#include "common/input_file.h"
#include "common/status.h"

namespace atl {
namespace {

int Advice(AccessPattern pattern) {
  switch (pattern) {
    case AccessPattern::kSequential:
      return MADV_SEQUENTIAL;
    case AccessPattern::kRandom:
      return MADV_RANDOM;
    case AccessPattern::kNormal:
      break;
  }
  return MADV_NORMAL;
}

void Unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, AccessPattern pattern) {
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenInput(path, InputKind::kFile));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile({}, path);  // mmap refuses a length of 0
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return ErrnoToStatus(errno, absl::StrCat("map ", path));
  ::madvise(address, size, Advice(pattern));  // only a hint: its failure changes nothing
  return MappedFile({static_cast<const std::byte*>(address), size}, path);
}

MappedFile::~MappedFile() { Unmap(bytes_); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap(bytes_);
    bytes_ = std::exchange(other.bytes_, {});
    path_ = std::move(other.path_);
  }
  return *this;
}

}  // namespace atl
