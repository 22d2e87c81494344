#ifndef ATOLL_TESTS_COMMON_FILE_TREE_H_
#define ATOLL_TESTS_COMMON_FILE_TREE_H_

#include <filesystem>
#include <map>
#include <string>

#include "common/file.h"

namespace atl {

/// The contents of every file and the names of every folder below a data directory, without LOCK, whose text
/// is the process that tries.
inline std::map<std::string, std::string> TreeOf(const std::string& folder) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = std::filesystem::relative(entry.path(), folder).string();
    if (path == "LOCK") continue;
    tree[path] = entry.is_regular_file() ? ReadFile(entry.path().string()).value() : "";
  }
  return tree;
}

}  // namespace atl

#endif  // ATOLL_TESTS_COMMON_FILE_TREE_H_
