#ifndef ATOLL_TESTS_STORAGE_TEMP_DIR_H_
#define ATOLL_TESTS_STORAGE_TEMP_DIR_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "common/file.h"

namespace atl {

/// A new folder, removed with everything in it.
class TempDir {
 public:
  TempDir() : path_(testing::TempDir() + "atoll-storage-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~TempDir() { RemoveAll(path_).IgnoreError(); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_TEMP_DIR_H_
