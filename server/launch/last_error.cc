#include "server/launch/last_error.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/file.h"
#include "common/printable.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr uint64_t kRead = 16 << 10;
constexpr size_t kShown = 400;

std::string Tail(const std::string& log, uint64_t from) {
  const auto size = FileSize(log);
  if (!size.ok() || *size <= from) return "";
  const uint64_t begin = std::max(from, *size - std::min(*size, kRead));
  std::ifstream file(log, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  std::string text(*size - begin, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

/// Empty: the line reports no error.
std::string ErrorIn(const std::string& line) {
  if (line.starts_with('{')) {
    const auto fields = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!fields.is_object() || fields.value("level", nlohmann::json()) != "error") return "";
    const auto message = fields.find("message");
    return message != fields.end() && message->is_string() ? message->get<std::string>() : "";
  }
  // 12:34:56.789 error   message
  constexpr std::string_view kLevel = " error ";
  constexpr size_t kTime = 12;
  if (line.size() <= kTime || line.compare(kTime, kLevel.size(), kLevel) != 0) return "";
  return line.substr(kTime + kLevel.size());
}

}  // namespace

std::string LastError(const std::string& log, uint64_t from) {
  std::string last;
  const std::vector<std::string> lines = absl::StrSplit(Tail(log, from), '\n');
  for (const std::string& line : lines) {
    std::string error = ErrorIn(line);
    if (!error.empty()) last = std::move(error);
  }
  std::string shown = Printable(std::string(absl::StripAsciiWhitespace(last)));
  if (shown.size() <= kShown) return shown;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
  return shown.substr(0, end) + "...";
}

}  // namespace atl
