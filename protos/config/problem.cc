#include "protos/config/problem.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace atl {
namespace {

constexpr size_t kMaxShown = 50;
constexpr size_t kMaxValueBytes = 60;

std::string Line(const ConfigProblem& problem, const std::string& source) {
  std::string line = source;
  if (!source.empty() && problem.line > 0) absl::StrAppend(&line, ":", problem.line);
  if (!line.empty()) line += ": ";
  return absl::StrCat(line, problem.path, problem.path.empty() ? "" : ": ", problem.text);
}

}  // namespace

std::string Quoted(std::string_view value) {
  const bool cut = value.size() > kMaxValueBytes;
  const std::string shown(value.substr(0, kMaxValueBytes));
  return absl::StrCat("'", cut ? absl::CHexEscape(shown) : absl::Utf8SafeCHexEscape(shown), cut ? "..." : "",
                      "'");
}

absl::Status ProblemsToStatus(std::vector<ConfigProblem> problems, std::string_view source_name) {
  if (problems.empty()) return absl::OkStatus();
  std::stable_sort(problems.begin(), problems.end(),
                   [](const ConfigProblem& a, const ConfigProblem& b) { return a.line < b.line; });
  const std::string source(source_name);
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(problems.size(), kMaxShown); ++i)
    lines.push_back(Line(problems[i], source));
  if (problems.size() > kMaxShown)
    lines.push_back(absl::StrCat("... and ", problems.size() - kMaxShown, " more"));
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace atl
