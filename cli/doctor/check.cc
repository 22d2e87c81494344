#include "cli/doctor/check.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/text.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      break;
  }
  return "fail";
}

}  // namespace

std::vector<std::string> RenderChecks(const std::vector<Check>& checks) {
  std::vector<std::string> lines;
  for (const Check& check : checks) {
    lines.push_back(
        absl::StrFormat(" %-5s %-18s %s", Name(check.verdict), check.name, Printable(check.text)));
    if (!check.advice.empty()) lines.push_back(absl::StrFormat("%26s-> %s", "", Printable(check.advice)));
  }
  return lines;
}

std::string ChecksToJson(const std::vector<Check>& checks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"verdict", Name(check.verdict)},
                    {"text", Printable(check.text)},
                    {"advice", Printable(check.advice)}});
  }
  const nlohmann::ordered_json json = {{"checks", list},
                                       {"failed", CountVerdict(checks, Verdict::kFail)},
                                       {"warnings", CountVerdict(checks, Verdict::kWarn)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

size_t CountVerdict(const std::vector<Check>& checks, Verdict verdict) {
  return static_cast<size_t>(std::ranges::count(checks, verdict, &Check::verdict));
}

}  // namespace atl
