#ifndef ATOLL_TESTS_CLI_ATOLLCTL_H_
#define ATOLL_TESTS_CLI_ATOLLCTL_H_

#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "tests/common/test_dir.h"
#include "tests/paths.h"

namespace atl {

/// What a program did: exit code, standard output, standard error.
struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs the real atollctl without a terminal.
class Atollctl {
 public:
  /// `first` are arguments that every call begins with; `environment` has entries "NAME=VALUE".
  explicit Atollctl(std::vector<std::string> first = {}, std::vector<std::string> environment = {})
      : first_(std::move(first)), environment_(std::move(environment)) {}

  Outcome Run(const std::vector<std::string>& arguments) const {
    std::string command = "env USER=tester";
    for (const std::string& variable : environment_) command += " " + Quoted(variable);
    command += " " + Quoted(ATOLL_BIN_DIR "/atollctl");
    for (const std::string& argument : first_) command += " " + Quoted(argument);
    for (const std::string& argument : arguments) command += " " + Quoted(argument);
    command += " </dev/null >" + Quoted(dir_.File("out")) + " 2>" + Quoted(dir_.File("err"));
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(dir_.File("out")).value_or(""),
            ReadFile(dir_.File("err")).value_or("")};
  }

 private:
  static std::string Quoted(const std::string& text) {
    return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
  }

  const std::vector<std::string> first_;
  const std::vector<std::string> environment_;
  TestDir dir_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLI_ATOLLCTL_H_
