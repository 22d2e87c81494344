#ifndef ATOLL_COMMON_LOG_H_
#define ATOLL_COMMON_LOG_H_

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

/// "debug", "info", "warning", "error", "off". InvalidArgument lists what is allowed.
absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name);

/// One value of a field. Numbers and booleans keep their types in JSON.
class LogValue {
 public:
  LogValue(bool v) : value_(v) {}                                   // NOLINT(google-explicit-constructor)
  LogValue(const char* v) : value_(std::string(v)) {}               // NOLINT(google-explicit-constructor)
  LogValue(std::string_view v) : value_(std::string(v)) {}          // NOLINT(google-explicit-constructor)
  LogValue(std::string v) : value_(std::move(v)) {}                 // NOLINT(google-explicit-constructor)
  LogValue(const absl::Status& v) : value_(v.ToString()) {}         // NOLINT(google-explicit-constructor)
  LogValue(std::signed_integral auto v) : value_(int64_t{v}) {}     // NOLINT(google-explicit-constructor)
  LogValue(std::unsigned_integral auto v) : value_(uint64_t{v}) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  LogValue(std::floating_point auto v) : value_(static_cast<double>(v)) {}

  using Variant = std::variant<bool, int64_t, uint64_t, double, std::string>;
  const Variant& value() const { return value_; }

 private:
  Variant value_;
};

using LogFields = std::vector<std::pair<std::string, LogValue>>;

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  /// Destination of the lines: this stream if set (it must outlive every copy of the logger), else this file
  /// (appended to) if not empty, else stderr, in colour on a terminal.
  std::ostream* stream = nullptr;
  std::string file;
};

/// Writes log lines. Created in main and passed by value: a copy is a pointer and the fields that it carries.
/// Thread-safe; lines are written whole, and before Log returns. If nothing reads the log, Log waits 100 ms
/// once and then queues: common/line_writer.h has the bounds. A default-constructed Logger writes nothing.
/// Lines written within a ScopedTrace (common/trace_context.h) end with its trace_id.
///
///   text: 12:34:56.789 info  round    round closed  version=12 contributions=4
///   json: {"time":"2026-01-31T12:34:56.789Z","level":"info","component":"round","message":"round
///   closed","version":12,...}
class Logger {
 public:
  Logger() = default;
  /// PermissionDenied or a similar error if the file cannot be opened.
  static absl::StatusOr<Logger> Create(const LogOptions& options);

  /// A logger that adds this field to every line. "component" is printed in a column of its own.
  Logger With(std::string key, LogValue value) const;

  bool Enabled(LogLevel level) const;
  void Log(LogLevel level, std::string_view message, const LogFields& fields = {}) const;
  void Debug(std::string_view message, const LogFields& fields = {}) const {
    Log(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, const LogFields& fields = {}) const {
    Log(LogLevel::kInfo, message, fields);
  }
  void Warning(std::string_view message, const LogFields& fields = {}) const {
    Log(LogLevel::kWarning, message, fields);
  }
  void Error(std::string_view message, const LogFields& fields = {}) const {
    Log(LogLevel::kError, message, fields);
  }
  /// Waits for queued lines, at most 2 s.
  void Flush() const;

 private:
  struct Backend;
  std::shared_ptr<Backend> backend_;
  std::string component_;
  std::shared_ptr<const LogFields> fields_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_LOG_H_
