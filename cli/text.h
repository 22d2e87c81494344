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

/// Columns of `text`: continuation bytes of UTF-8 and colour codes take none.
size_t Columns(const std::string& text);

/// The first `width` columns of it, colours ended.
std::string CutToColumns(const std::string& text, size_t width);
/// Lines of at most `width` columns, broken at spaces, but not between a number and its unit; all but the
/// first are indented by three. A word that is longer is cut.
std::vector<std::string> WrapToColumns(const std::string& text, size_t width);

/// "2026-11-21 04:05:06" in the local time zone; "-" for 0.
std::string LocalTime(int64_t unix_nanos);

const char* StateName(v1::RunState state);
const char* PhaseName(v1::WorkerPhase phase);
/// In lower case without its prefix: "drain"; empty when there is none.
std::string CommandName(v1::Command command);

/// Of a worker or a run that waits: "waits for w1", "waits: paused by ann", from what the coordinator says.
std::string WaitsText(const std::string& waiting_for);

enum class Align { kLeft, kRight };
struct Column {
  std::string title;
  Align align = Align::kLeft;
};
/// Lines of a table: titles, then rows, each column as wide as it must be, without spaces at the end. Cells
/// are made printable. A row may be shorter than the titles.
std::vector<std::string> RenderTable(const std::vector<Column>& columns,
                                     const std::vector<std::vector<std::string>>& rows);

void PrintLines(const std::vector<std::string>& lines);

}  // namespace atl

#endif  // ATOLL_CLI_TEXT_H_
