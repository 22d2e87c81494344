#ifndef ATOLL_TESTS_FAKES_DEV_CERTS_H_
#define ATOLL_TESTS_FAKES_DEV_CERTS_H_

#include <cstdlib>
#include <string>

#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"
#include "tests/paths.h"

namespace atl {

/// Certificates made now by scripts/dev-certs.sh, in a folder that goes away with the object.
class DevCerts {
 public:
  /// Runs the script for this folder; `arguments` as on its command line.
  void Make(const std::string& arguments) {
    const std::string command = "'" ATOLL_SOURCE_DIR "/scripts/dev-certs.sh' '" + dir_.path() + "' " +
                                arguments + " >'" + dir_.File("log") + "' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << ReadFile(dir_.File("log")).value_or("");
  }
  /// Path of "ca.pem", "worker-w0.key", ...
  std::string Path(const std::string& name) const { return dir_.File(name); }
  std::string Read(const std::string& name) const {
    const auto text = ReadFile(Path(name));
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }

 private:
  TestDir dir_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_DEV_CERTS_H_
