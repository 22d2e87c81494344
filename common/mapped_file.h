#ifndef ATOLL_COMMON_MAPPED_FILE_H_
#define ATOLL_COMMON_MAPPED_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace atl {

/// How the mapping will be read; a hint for the kernel.
enum class AccessPattern { kNormal, kSequential, kRandom };

/// A file mapped read-only. The bytes may be read by any number of threads. The file must not be truncated
/// while it is mapped (reading a removed page kills the process with SIGBUS). An empty file maps to an
/// empty span.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path,
                                         AccessPattern pattern = AccessPattern::kNormal);

  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  std::span<const std::byte> bytes_;
  std::string path_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_MAPPED_FILE_H_
