#ifndef ATOLL_WORKER_APP_EVAL_CSV_H_
#define ATOLL_WORKER_APP_EVAL_CSV_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

struct CsvRow {
  size_t line = 0;  // where it begins
  std::vector<std::string> fields = {};
};

/// The rows of a CSV text (RFC 4180: commas, fields in double quotes may hold commas, line ends and doubled
/// quotes). Blank lines are no rows. InvalidArgument names `path` and the line: a quote that is not closed,
/// or text after a closing quote.
absl::StatusOr<std::vector<CsvRow>> ParseCsv(const std::string& path, std::string_view text);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CSV_H_
