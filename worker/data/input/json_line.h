#ifndef ATOLL_WORKER_DATA_INPUT_JSON_LINE_H_
#define ATOLL_WORKER_DATA_INPUT_JSON_LINE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// Bytes that must be readable behind a line; their contents do not matter.
inline constexpr size_t kJsonPadding = 64;

/// Reads the text of a document from a line of JSON (simdjson). Not thread-safe.
class JsonLineReader {
 public:
  explicit JsonLineReader(std::string field);
  ~JsonLineReader();

  /// The string of the field, valid until the next call; of a key that stands twice the last one, as in
  /// Python. Requires kJsonPadding readable bytes behind the line. InvalidArgument, with a text that
  /// continues "line N: ...", for what is no JSON object (also with invalid UTF-8) and without such a string.
  absl::StatusOr<std::string_view> Text(std::string_view line);

  /// Names of the fields that hold strings, in order; none if the line is no JSON object.
  static std::vector<std::string> StringFields(const std::string& line);

 private:
  struct Parser;
  const std::string field_;
  const std::unique_ptr<Parser> parser_;
};

/// Whether the text is valid UTF-8 (simdjson: some GB/s).
bool IsValidUtf8(std::string_view text);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_JSON_LINE_H_
