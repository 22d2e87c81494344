#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/compare/compare_view.h"
#include "cli/compare/page_files.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

/// A module's text for a page that has all modules in one: the names of the others are there already.
std::string InOneModule(std::string_view module) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(absl::string_view(module.data(), module.size()), '\n')) {
    if (absl::StartsWith(line, "import ")) continue;
    absl::ConsumePrefix(&line, "export ");
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

/// JSON inside a script element: no text of a run may end the element.
std::string Embedded(const nlohmann::ordered_json& json) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace

std::string CompareHtml(const CompareView& view) {
  std::string page, style, script;
  for (const PageFile& file : ComparePageFiles()) {
    const std::string_view path = file.path;
    if (path.ends_with(".html")) page = std::string(file.bytes);
    if (path.ends_with(".css")) style = std::string(file.bytes);
    if (path.ends_with(".js")) script += InOneModule(file.bytes);
  }
  return absl::StrReplaceAll(
      page, {{"@STYLE@", style}, {"@DATA@", Embedded(CompareJson(view))}, {"@SCRIPT@", script}});
}

}  // namespace atl
