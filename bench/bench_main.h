#ifndef ATOLL_BENCH_BENCH_MAIN_H_
#define ATOLL_BENCH_BENCH_MAIN_H_

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {

/// Runs `measure` in the folder `dir`, which must be new and is removed after it whatever came of it. Empty:
/// a name of its own below the working folder.
inline absl::Status InNewFolder(const std::string& dir, const std::string& bench,
                                const std::function<absl::Status(const std::string& dir)>& measure) {
  const std::string folder = dir.empty() ? absl::StrCat(bench, ".", ::getpid()) : dir;
  if (FileExists(folder)) {
    return absl::AlreadyExistsError(absl::StrCat(folder, " is there already; name a new folder"));
  }
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  const absl::Status status = measure(folder);
  RemoveAll(folder).IgnoreError();
  return status;
}

/// A program's exit code for what came of it.
inline int ExitCodeOfBench(const char* program, const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", program, status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace atl

#endif  // ATOLL_BENCH_BENCH_MAIN_H_
