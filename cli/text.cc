#include "cli/text.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace atl {

size_t Columns(const std::string& text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++columns;
  }
  return columns;
}

std::string CutToColumns(const std::string& text, size_t width) {
  if (Columns(text) <= width) return text;
  std::string cut;
  size_t columns = 0;
  bool coloured = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') cut += text[i++];
      if (i < text.size()) cut += text[i];
      coloured = true;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++columns > width) break;
    cut += text[i];
  }
  return coloured ? cut + "\x1b[0m" : cut;
}

namespace {

/// Whether the space at `at` separates a number from its unit. Both must stay on one line.
bool IsBeforeUnit(std::string_view text, size_t at) {
  if (at == 0 || !absl::ascii_isdigit(static_cast<unsigned char>(text[at - 1]))) return false;
  std::string_view word = text.substr(at + 1);
  word = word.substr(0, word.find_first_of(" ,;:)/"));
  constexpr std::string_view kUnits[] = {"%", "s", "ms", "µs", "B", "KiB", "MiB", "GiB", "TiB"};
  return std::ranges::find(kUnits, word) != std::end(kUnits);
}

}  // namespace

std::vector<std::string> WrapToColumns(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (Columns(rest) > width) {
    // The last space at which the line is short enough, not counting the indent.
    const size_t indent = rest.find_first_not_of(' ');
    size_t at = std::string::npos;
    for (size_t i = rest.find(' ', indent); i != std::string::npos; i = rest.find(' ', i + 1)) {
      if (Columns(rest.substr(0, i)) > width) break;
      if (!IsBeforeUnit(rest, i)) at = i;
    }
    if (at == std::string::npos) break;
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(rest.substr(0, at)));
    rest = "   " + std::string(absl::StripLeadingAsciiWhitespace(rest.substr(at)));
  }
  lines.push_back(CutToColumns(rest, width));
  return lines;
}

std::string LocalTime(int64_t unix_nanos) {
  if (unix_nanos == 0) return "-";
  const std::time_t seconds = unix_nanos / 1'000'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

const char* StateName(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_STARTING:
      return "starting";
    case v1::RUN_STATE_TRAINING:
      return "training";
    case v1::RUN_STATE_DEGRADED:
      return "degraded";
    case v1::RUN_STATE_CRITICAL:
      return "critical";
    case v1::RUN_STATE_FINISHED:
      return "finished";
    case v1::RUN_STATE_PAUSED:
      return "paused";
    case v1::RUN_STATE_STOPPED:
      return "stopped";
    default:
      return "unknown";
  }
}

const char* PhaseName(v1::WorkerPhase phase) {
  switch (phase) {
    case v1::WORKER_PHASE_JOINING:
      return "joining";
    case v1::WORKER_PHASE_SEEDING:
      return "seeding";
    case v1::WORKER_PHASE_PULLING:
      return "pulling";
    case v1::WORKER_PHASE_EVALUATING:
      return "evaluating";
    case v1::WORKER_PHASE_TRAINING:
      return "training";
    case v1::WORKER_PHASE_PUSHING:
      return "pushing";
    case v1::WORKER_PHASE_WAITING:
      return "waiting";
    case v1::WORKER_PHASE_LEAVING:
      return "leaving";
    default:
      return "-";
  }
}

std::string WaitsText(const std::string& waiting_for) {
  constexpr absl::string_view kWaiting = "waiting for ";
  if (!absl::StartsWith(waiting_for, kWaiting)) return "waits: " + waiting_for;
  return "waits for " + waiting_for.substr(kWaiting.size());
}

std::string ActivityText(const v1::Progress& progress) {
  const std::string text = Printable(progress.waiting_for());
  return text.empty() || progress.phase() == v1::WORKER_PHASE_EVALUATING ? text : WaitsText(text);
}

std::string CommandName(v1::Command command) {
  std::string name = v1::Command_Name(command);
  name = absl::AsciiStrToLower(name.substr(name.rfind('_') + 1));
  return name == "none" || name == "unspecified" ? "" : name;
}

std::string EventKindName(v1::RunEvent::Kind kind) {
  const std::string name = v1::RunEvent::Kind_Name(kind);
  return name.empty() || kind == v1::RunEvent::KIND_UNSPECIFIED ? "OTHER" : name;
}

std::vector<std::string> RenderTable(const std::vector<Column>& columns,
                                     const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const Column& column : columns) widths.push_back(Columns(column.title));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(Printable(row[i])));
  }
  const auto line = [&](const auto& cell, size_t cells) {
    std::string text;
    for (size_t i = 0; i < cells; ++i) {
      const std::string clean = Printable(cell(i));
      const std::string gap(widths[i] - Columns(clean), ' ');
      text += i == 0 ? " " : "  ";
      text += columns[i].align == Align::kRight ? gap + clean : clean + gap;
    }
    return std::string(absl::StripTrailingAsciiWhitespace(text));
  };
  std::vector<std::string> lines;
  lines.push_back(line([&](size_t i) { return columns[i].title; }, columns.size()));
  for (const auto& row : rows) lines.push_back(line([&](size_t i) { return row[i]; }, row.size()));
  return lines;
}

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

}  // namespace atl
