#include "worker/data/input/first_bytes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/input/binary_kind.h"
#include "worker/data/input/json_line.h"

namespace atl {

absl::Status CheckIsText(const std::string& path, std::string_view first_bytes) {
  const BinaryKind* const kind = FindBinaryKind(first_bytes);
  if (kind == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("text file ", path, ": is ", std::string(kind->what),
                                                 ", not text; ", std::string(kind->remedy)));
}

absl::Status CheckIsNotJsonLines(const std::string& path, std::string_view first_bytes) {
  const std::string_view line = first_bytes.substr(0, first_bytes.find('\n'));
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') return absl::OkStatus();
  const std::vector<std::string> fields = JsonLineReader::StringFields(std::string(line));
  if (fields.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "text file ", path, ": its first line is a JSON object with the string(s) '",
      absl::StrJoin(fields, "', '"), "'; name the field that holds the text, for example --field ",
      fields.front(), ", or take the lines as they are with --format text"));
}

}  // namespace atl
