#include "worker/data/input/input_list.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/status.h"

namespace atl {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 32;

absl::StatusOr<InputFile> Describe(const std::string& path) {
  if (path == "-") return InputFile{.path = path};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("opening text file ", path));
  InputFile file{.path = path};
  file.regular = S_ISREG(info.st_mode);
  if (!file.regular) return file;
  file.bytes = static_cast<uint64_t>(info.st_size);
  file.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return file;
}

absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code problem;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink, problem);
  for (; !problem && at != fs::recursive_directory_iterator(); at.increment(problem)) {
    const bool hidden = at->path().filename().string().starts_with('.');
    if (at->is_directory(problem)) {
      if (hidden) at.disable_recursion_pending();
      if (at.depth() > kDeepest) {
        return absl::FailedPreconditionError(
            absl::StrCat("reading text folder ", folder, ": ", at->path().string(),
                         " is too deep; does a link lead back to a folder above it?"));
      }
    } else if (!problem && !hidden && at->is_regular_file(problem)) {
      paths.push_back(at->path().string());
    }
  }
  if (problem) return ErrnoToStatus(problem.value(), absl::StrCat("reading text folder ", folder));
  if (paths.empty()) {
    return absl::NotFoundError(
        absl::StrCat("text folder ", folder, ": no file in it (hidden ones do not count)"));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (code == GLOB_NOMATCH) {
    return absl::NotFoundError(absl::StrCat("no file matches ", pattern, "; check the pattern"));
  }
  if (code != 0)
    return absl::UnavailableError(absl::StrCat("looking for ", pattern, ": a folder is not readable"));
  return paths;
}

absl::StatusOr<std::vector<std::string>> Expand(const std::string& name) {
  std::error_code ignored;
  if (name == "-") return std::vector<std::string>{name};
  if (fs::is_directory(name, ignored)) return FilesBelow(name);
  if (fs::exists(name, ignored) || name.find_first_of("*?[") == std::string::npos) {
    return std::vector<std::string>{name};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> matches, Matches(name));
  std::vector<std::string> paths;
  for (const std::string& match : matches) {
    if (!fs::is_directory(match, ignored)) {
      paths.push_back(match);
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> below, FilesBelow(match));
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::vector<InputFile>> ListInputs(const std::vector<std::string>& names) {
  if (names.empty()) return absl::InvalidArgumentError("no text file given");
  std::vector<InputFile> files;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Expand(name));
    for (const std::string& path : paths) {
      if (!seen.insert(path == "-" ? path : fs::path(path).lexically_normal().string()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("text file ", path, " is named twice; name each file once"));
      }
      ATOLL_ASSIGN_OR_RETURN(InputFile file, Describe(path));
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace atl
