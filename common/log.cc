#include "common/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "absl/strings/str_cat.h"
#include "common/log_format.h"
#include "common/trace_context.h"

namespace atl {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

spdlog::sink_ptr MakeSink(const LogOptions& options) {
  if (options.stream != nullptr)
    return std::make_shared<spdlog::sinks::ostream_sink_mt>(*options.stream, true);
  if (!options.file.empty()) return std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
  return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
}

const std::shared_ptr<const LogFields>& NoFields() {
  static const auto none = std::make_shared<const LogFields>();
  return none;
}

}  // namespace

struct Logger::Backend {
  Backend(const LogOptions& options, spdlog::sink_ptr sink)
      : format(options.format), logger("atoll-log", std::move(sink)) {
    logger.set_pattern(format == LogFormat::kJson ? "%v" : "%H:%M:%S.%e %^%-7l%$ %v");
    logger.set_level(ToSpdlog(options.level));
    logger.flush_on(spdlog::level::debug);  // otherwise a crash could lose the most important lines
  }
  const LogFormat format;
  spdlog::logger logger;
};

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return absl::InvalidArgumentError(
      absl::StrCat("log level '", std::string(name), "' is not one of debug, info, warning, error, off"));
}

absl::StatusOr<Logger> Logger::Create(const LogOptions& options) {
  Logger logger;
  try {
    logger.backend_ = std::make_shared<Backend>(options, MakeSink(options));
  } catch (const spdlog::spdlog_ex& error) {
    return absl::PermissionDeniedError(absl::StrCat("open log file ", options.file, ": ", error.what()));
  }
  return logger;
}

Logger Logger::With(std::string key, LogValue value) const {
  Logger logger = *this;
  if (key == "component") {
    logger.component_ = RenderLogValue(value);
    return logger;
  }
  LogFields fields = fields_ ? *fields_ : LogFields();
  fields.emplace_back(std::move(key), std::move(value));
  logger.fields_ = std::make_shared<const LogFields>(std::move(fields));
  return logger;
}

bool Logger::Enabled(LogLevel level) const {
  return backend_ != nullptr && backend_->logger.should_log(ToSpdlog(level));
}

void Logger::Log(LogLevel level, std::string_view message, const LogFields& fields) const {
  if (level == LogLevel::kOff || !Enabled(level)) return;
  const auto now = spdlog::log_clock::now();
  LogFields traced;
  if (const TraceContext* trace = CurrentTrace()) {
    traced = fields;
    traced.emplace_back("trace_id", trace->trace_id);
  }
  const LogLine line{
      now, level, component_, message, fields_ ? *fields_ : *NoFields(), traced.empty() ? fields : traced};
  const std::string text = backend_->format == LogFormat::kJson ? RenderJsonLine(line) : RenderTextLine(line);
  backend_->logger.log(now, spdlog::source_loc{}, ToSpdlog(level),
                       spdlog::string_view_t(text.data(), text.size()));
}

void Logger::Flush() const {
  if (backend_ != nullptr) backend_->logger.flush();
}

}  // namespace atl
