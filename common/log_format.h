#ifndef ATOLL_COMMON_LOG_FORMAT_H_
#define ATOLL_COMMON_LOG_FORMAT_H_

#include <chrono>
#include <string>
#include <string_view>

#include "common/log.h"

// How a line of the log looks; used by common/log.cc only.

namespace atl {

/// One line before it is rendered. Views of the caller's data.
struct LogLine {
  std::chrono::system_clock::time_point time;
  LogLevel level;
  std::string_view component;
  std::string_view message;
  const LogFields& context;  // what the logger carries
  const LogFields& fields;   // what the call adds
};

/// The value as plain text: no quotes; floating point with up to six significant digits.
std::string RenderLogValue(const LogValue& value);

/// "component  message  key=value key="two words"", without time and level. Control characters become \xNN,
/// so that no foreign text can fake a line or drive the terminal; a newline in the message stays.
std::string RenderTextLine(const LogLine& line);

/// One JSON object. Invalid UTF-8 is replaced by U+FFFD; a number that JSON cannot say becomes the string
/// "nan", "inf" or "-inf". A field whose key is taken gets an underscore at its end.
std::string RenderJsonLine(const LogLine& line);

}  // namespace atl

#endif  // ATOLL_COMMON_LOG_FORMAT_H_
