#include "common/log_format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/printable.h"

namespace atl {
namespace {

constexpr size_t kComponentWidth = 11;

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "off";
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Control characters as \xNN, without invisible ones of Unicode.
std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsControl(c)) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return Printable(out);
}

// A message may have several lines and may quote foreign text. All lines after the first are indented, so
// that none looks like a new entry.
std::string Indented(std::string_view message) {
  std::string out;
  while (true) {
    const size_t end = message.find('\n');
    out += Escape(message.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += "\n    ";
    message.remove_prefix(end + 1);
  }
}

std::string QuoteIfNeeded(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \"=\\") == std::string::npos;
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return absl::StrCat(out, "\"");
}

void AppendFields(const LogFields& fields, const char* first, std::string* out) {
  for (const auto& [key, value] : fields) {
    absl::StrAppend(out, first, key, "=", Escape(QuoteIfNeeded(RenderLogValue(value))));
    first = " ";
  }
}

nlohmann::ordered_json ToJson(const LogValue& value) {
  return std::visit(
      [&](const auto& v) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
          if (!std::isfinite(v)) return RenderLogValue(value);
        }
        return v;
      },
      value.value());
}

void AddFields(const LogFields& fields, nlohmann::ordered_json* object) {
  for (const auto& [key, value] : fields) {
    std::string name = key;
    while (object->contains(name)) name.push_back('_');
    (*object)[name] = ToJson(value);
  }
}

}  // namespace

std::string RenderLogValue(const LogValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
        if constexpr (std::is_same_v<T, double>) {
          if (!std::isfinite(v)) return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
        }
        return absl::StrCat(v);
      },
      value.value());
}

std::string RenderTextLine(const LogLine& line) {
  std::string out;
  if (!line.component.empty()) {
    out = Escape(line.component);
    out.resize(std::max(out.size() + 1, kComponentWidth), ' ');
  }
  absl::StrAppend(&out, Indented(line.message));
  AppendFields(line.context, "  ", &out);
  AppendFields(line.fields, line.context.empty() ? "  " : " ", &out);
  return out;
}

std::string RenderJsonLine(const LogLine& line) {
  nlohmann::ordered_json object;
  object["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(line.time), absl::UTCTimeZone());
  object["level"] = LevelName(line.level);
  if (!line.component.empty()) object["component"] = std::string(line.component);
  object["message"] = std::string(line.message);
  AddFields(line.context, &object);
  AddFields(line.fields, &object);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace atl
