#include "client/engine/option_words.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "client/engine/engine_options.h"

namespace atl {
namespace {

constexpr std::string_view kDashes = "--";

bool EndsWithAny(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

std::string_view FlagAt(std::string_view text) {
  const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  return text.substr(0, end);
}

/// What stands before the flag's name instead of the dashes, after this text.
std::string_view WordAfter(std::string_view before) {
  return EndsWithAny(before, {"another ", "same "}) ? "" : "option ";
}

}  // namespace

std::string WithOptionWords(std::string_view message) {
  const std::vector<std::string> names = EngineOptionNames();
  std::string text;
  bool quoted = false;
  while (!message.empty()) {
    const bool starts = message.starts_with(kDashes) && (text.empty() || EndsWithAny(text, {" ", "("}));
    const std::string_view name = starts ? FlagAt(message.substr(kDashes.size())) : "";
    const bool ours = !quoted && std::ranges::count(names, name) > 0 &&
                      !EndsWithAny(text, {"coordinator's ", "atollctl ", "atoll-coordinator "});
    if (ours) {
      text += WordAfter(text);
      text += name;
      message.remove_prefix(kDashes.size() + name.size());
      continue;
    }
    quoted ^= message.front() == '`';
    text += message.front();
    message.remove_prefix(1);
  }
  return text;
}

}  // namespace atl
