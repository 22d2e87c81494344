#ifndef ATOLL_WORKER_APP_EVAL_IS_FOLDER_H_
#define ATOLL_WORKER_APP_EVAL_IS_FOLDER_H_

#include <sys/stat.h>

#include <string>

namespace atl {

/// Whether there is a folder of this name, or a link to one.
inline bool IsFolder(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_IS_FOLDER_H_
