#include "worker/app/eval/json_lines.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/file.h"
#include "common/status.h"
#include "core/bounded_json.h"
#include "worker/app/eval/line_error.h"

namespace atl {
namespace {

constexpr JsonBounds kBounds = {.depth = 4, .values = 1000};

absl::Status Member(std::string_view name, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrFormat("\"%s\" %s", std::string(name), std::string(what)));
}

}  // namespace

absl::Status ReadJsonLines(const std::string& path, size_t most,
                           const std::function<absl::Status(const nlohmann::json&)>& take) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t number = 0, taken = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (most > 0 && taken == most) break;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const auto json = ParseBoundedJson({line.data(), line.size()}, kBounds);
    if (!json.ok()) return LineError(path, number, std::string(json.status().message()));
    if (!json->is_object()) return LineError(path, number, "is not a JSON object");
    const absl::Status status = take(*json);
    if (!status.ok()) return LineError(path, number, std::string(status.message()));
    ++taken;
  }
  if (taken > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds no question; each line is one JSON object"));
}

absl::StatusOr<std::string> TextOf(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  if (found == object.end()) return Member(name, "is missing");
  if (!found->is_string()) return Member(name, "is not a text");
  return found->get<std::string>();
}

absl::StatusOr<std::vector<std::string>> TextsOf(const nlohmann::json& object, std::string_view name) {
  const auto found = object.find(name);
  if (found == object.end()) return Member(name, "is missing");
  if (!found->is_array() || found->size() < 2) return Member(name, "is not a list of at least two texts");
  std::vector<std::string> texts;
  for (const nlohmann::json& one : *found) {
    if (!one.is_string()) return Member(name, "holds something that is not a text");
    texts.push_back(one.get<std::string>());
  }
  return texts;
}

absl::StatusOr<size_t> AnswerOf(const nlohmann::json& object, std::string_view name, size_t count,
                                AnswerForm form) {
  const auto found = object.find(name);
  if (found == object.end()) return Member(name, "is missing, so nothing says which answer is right");
  uint64_t index = count;
  if (found->is_number_unsigned()) index = found->get<uint64_t>();
  if (found->is_string()) {
    const std::string text = found->get<std::string>();
    const bool letter = form == AnswerForm::kIndexOrLetter && text.size() == 1 && text[0] >= 'A';
    if (letter) {
      index = static_cast<uint64_t>(text[0] - 'A');
    } else if (!absl::SimpleAtoi(text, &index)) {
      index = count;
    }
  }
  if (index < count) return static_cast<size_t>(index);
  return Member(name, absl::StrFormat("is %s, which is none of the %d answers (0 to %d)",
                                      found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                      count, count - 1));
}

}  // namespace atl
