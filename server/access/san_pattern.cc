#include "server/access/san_pattern.h"

#include "absl/strings/str_format.h"

namespace atl {
namespace {

constexpr std::string_view kName = "{name}";

bool IsUri(std::string_view text) { return text.find("://") != std::string_view::npos; }

}  // namespace

absl::StatusOr<SanPattern> SanPattern::Parse(const std::string& text) {
  SanPattern pattern;
  pattern.text_ = text;
  pattern.uri_ = IsUri(text);
  int names = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '*') {
      pattern.parts_.push_back({.kind = Kind::kAny, .text = {}});
      ++at;
    } else if (std::string_view(text).substr(at, kName.size()) == kName) {
      pattern.parts_.push_back({.kind = Kind::kName, .text = {}});
      at += kName.size();
      ++names;
    } else {
      if (pattern.parts_.empty() || pattern.parts_.back().kind != Kind::kText) pattern.parts_.push_back({});
      pattern.parts_.back().text.push_back(text[at++]);
    }
  }
  if (names == 1) return pattern;
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is no pattern of names: it needs {name} in it, once; for example "
                      "spiffe://*/worker/{name} or {name}.islands.example",
                      text));
}

bool SanPattern::Reaches(Kind kind, std::string_view text) const {
  if (text.find('/') != std::string_view::npos) return false;
  return uri_ || kind == Kind::kName || text.find('.') == std::string_view::npos;
}

bool SanPattern::Match(size_t part, std::string_view rest, std::string& name) const {
  if (part == parts_.size()) return rest.empty();
  const Part& here = parts_[part];
  if (here.kind == Kind::kText) {
    return rest.starts_with(here.text) && Match(part + 1, rest.substr(here.text.size()), name);
  }
  for (size_t length = 1; length <= rest.size() && Reaches(here.kind, rest.substr(0, length)); ++length) {
    if (!Match(part + 1, rest.substr(length), name)) continue;
    if (here.kind == Kind::kName) name = std::string(rest.substr(0, length));
    return true;
  }
  return false;
}

std::optional<std::string> SanPattern::Match(std::string_view san) const {
  // Names in certificates have bounds; ours keeps the search for a pattern of many stars short.
  constexpr size_t kLongest = 512;
  std::string name;
  if (IsUri(san) != uri_ || san.size() > kLongest || !Match(0, san, name)) return std::nullopt;
  return name;
}

}  // namespace atl
