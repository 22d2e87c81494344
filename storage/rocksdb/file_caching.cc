#include "storage/rocksdb/file_caching.h"

#include <fcntl.h>

#include "common/file.h"
#include "common/file_descriptor.h"

namespace atl {

FileCaching ProbeFileCaching(const std::string& folder) {
  const std::string path = JoinPath(folder, "probe");
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
  RemoveFile(path).IgnoreError();
  return fd.valid() ? FileCaching::kBypassed : FileCaching::kCached;
}

}  // namespace atl
