#ifndef ATOLL_COMMON_LOG_FORMAT_H_
#define ATOLL_COMMON_LOG_FORMAT_H_

#include <chrono>
#include <string>
#include <string_view>

#include "common/log.h"

// Formats log lines; used only by common/log.cc.

namespace atl {

/// One line before it is rendered. Views of the caller's data.
struct LogLine {
  std::chrono::system_clock::time_point time;
  LogLevel level;
  std::string_view component;
  std::string_view message;
  const LogFields& context;  // fields of the logger
  const LogFields& fields;   // fields of the call
};

/// The value as plain text: no quotes; floating point with up to six significant digits.
std::string RenderLogValue(const LogValue& value);

/// "component  message  key=value key="two words"", without time and level. Control characters become \xNN,
/// so that foreign text cannot fake a line or control the terminal. A newline in the message is kept.
std::string RenderTextLine(const LogLine& line);

/// One JSON object. Invalid UTF-8 is replaced by U+FFFD; a number that JSON cannot represent becomes the
/// string "nan", "inf" or "-inf". A field with a duplicate key gets an underscore appended.
std::string RenderJsonLine(const LogLine& line);

}  // namespace atl

#endif  // ATOLL_COMMON_LOG_FORMAT_H_
