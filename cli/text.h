#ifndef ATOLL_CLI_TEXT_H_
#define ATOLL_CLI_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"
#include "common/printable.h"  // what came over the wire reaches a terminal through Printable()

// Text for a terminal.

namespace atl {

/// Columns of `text`, without continuation bytes of UTF-8 and colour codes.
size_t Columns(const std::string& text);

/// The first `width` columns of `text`, with colours reset at the end.
std::string CutToColumns(const std::string& text, size_t width);
/// Wraps at spaces into lines of at most `width` columns, but not between a number and its unit. All lines
/// except the first are indented by three. A longer word is cut.
std::vector<std::string> WrapToColumns(const std::string& text, size_t width);

/// "2026-11-21 04:05:06" in the local time zone; "-" for 0.
std::string LocalTime(int64_t unix_nanos);

const char* StateName(v1::RunState state);
const char* PhaseName(v1::WorkerPhase phase);
/// In lower case without its prefix: "drain"; empty when there is none.
std::string CommandName(v1::Command command);

/// As in the protocol; OTHER: one without a kind of its own, or of a newer release.
std::string EventKindName(v1::RunEvent::Kind kind);

/// Turns the coordinator's words about a waiting worker or run into "waits for w1" or "waits: paused by ann".
std::string WaitsText(const std::string& waiting_for);

/// What a worker waits for, or how far the tasks of an evaluation are; empty: neither.
std::string ActivityText(const v1::Progress& progress);

enum class Align { kLeft, kRight };
struct Column {
  std::string title;
  Align align = Align::kLeft;
};
/// Lines of a table: titles, then rows, with columns of minimal width and no trailing spaces. Makes cells
/// printable. A row may have fewer cells than there are titles.
std::vector<std::string> RenderTable(const std::vector<Column>& columns,
                                     const std::vector<std::vector<std::string>>& rows);

void PrintLines(const std::vector<std::string>& lines);

}  // namespace atl

#endif  // ATOLL_CLI_TEXT_H_
