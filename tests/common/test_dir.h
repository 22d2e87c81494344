#ifndef ATOLL_TESTS_COMMON_TEST_DIR_H_
#define ATOLL_TESTS_COMMON_TEST_DIR_H_

#include <stdlib.h>  // mkdtemp

#include <string>
#include <string_view>

#include "common/file.h"
#include "gtest/gtest.h"

namespace atl {

/// A fresh folder that goes away with the object.
class TestDir {
 public:
  TestDir() : path_(JoinPath(::testing::TempDir(), "atoll-XXXXXX")) {
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~TestDir() { RemoveAll(path_).IgnoreError(); }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_COMMON_TEST_DIR_H_
