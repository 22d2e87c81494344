#include "common/left_over.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

bool BeginsWith(const std::string& path, std::string_view mark) {
  std::string begin(mark.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file.good() && begin == mark;
}

}  // namespace

absl::Status CheckLeftOver(std::string_view flag, const std::string& path, std::string_view mark) {
  struct stat info {};
  // Errors of an unreadable file are reported when it is written.
  if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();
  const bool regular = S_ISREG(info.st_mode);
  if (regular && (info.st_size == 0 || (!mark.empty() && BeginsWith(path, mark)))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s %s: the file exists and %s; it would be lost: remove it, or give another file", std::string(flag),
      path, regular ? "another program wrote it" : "it is not a regular file"));
}

}  // namespace atl
