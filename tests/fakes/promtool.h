#ifndef ATOLL_TESTS_FAKES_PROMTOOL_H_
#define ATOLL_TESTS_FAKES_PROMTOOL_H_

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {

inline bool HavePromtool() { return std::system("command -v promtool >/dev/null 2>&1") == 0; }

/// What `promtool check metrics` has against a scrape's text: names, help texts, types; empty when nothing.
inline std::string PromtoolComplaints(const std::string& metrics) {
  const TestDir dir;
  EXPECT_TRUE(WriteFileAtomically(dir.File("metrics"), metrics).ok());
  const std::string command =
      "promtool check metrics < " + dir.File("metrics") + " > " + dir.File("complaints") + " 2>&1";
  const int result = std::system(command.c_str());
  const std::string complaints = ReadFile(dir.File("complaints")).value_or("");
  const bool failed = !WIFEXITED(result) || WEXITSTATUS(result) != 0;
  return failed && complaints.empty() ? "promtool failed" : complaints;
}

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_PROMTOOL_H_
