#include "common/log.h"

#include <fcntl.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/line_writer.h"
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

// The escape sequence of the level's name on a terminal.
std::string_view Colour(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "\x1b[36m";
    case LogLevel::kInfo:
      return "\x1b[32m";
    case LogLevel::kWarning:
      return "\x1b[33m\x1b[1m";
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return "\x1b[31m\x1b[1m";
}

const std::shared_ptr<const LogFields>& NoFields() {
  static const auto none = std::make_shared<const LogFields>();
  return none;
}

}  // namespace

struct Logger::Backend {
  // How a line looks. The writer's thread may outlive the logger, so it shares this.
  class Look {
   public:
    Look(LogFormat format, bool in_colour)
        : format_(format),
          in_colour_(in_colour),
          formatter_(format == LogFormat::kJson ? "%v" : "%H:%M:%S.%e %^%-7l%$ %v") {}

    std::string Render(const LogLine& line) {
      const std::string text = format_ == LogFormat::kJson ? RenderJsonLine(line) : RenderTextLine(line);
      const spdlog::details::log_msg message(line.time, {}, "", ToSpdlog(line.level), text);
      spdlog::memory_buf_t buffer;
      {
        const std::lock_guard lock(mutex_);
        formatter_.format(message, buffer);
      }
      std::string whole(buffer.data(), buffer.size());
      if (in_colour_ && message.color_range_end > message.color_range_start) {
        whole.insert(message.color_range_end, "\x1b[m");
        whole.insert(message.color_range_start, Colour(line.level));
      }
      return whole;
    }

    std::string RenderDropped(uint64_t lines, double seconds) {
      const LogFields none, fields = {{"lines", lines}, {"since_s", seconds}};
      return Render({std::chrono::system_clock::now(), LogLevel::kWarning, "log",
                     "lines were dropped: nothing read the log, and its queue was full", none, fields});
    }

   private:
    const LogFormat format_;
    const bool in_colour_;
    std::mutex mutex_;
    spdlog::pattern_formatter formatter_;
  };

  void Write(const LogLine& line) {
    if (writer != nullptr) {
      writer->AwaitWritten(writer->Add(look->Render(line), line.level >= LogLevel::kWarning));
      return;
    }
    const std::string text = look->Render(line);
    const std::lock_guard lock(mutex);
    *stream << text << std::flush;
  }

  LogLevel level = LogLevel::kInfo;
  std::shared_ptr<Look> look;
  std::unique_ptr<LineWriter> writer;  // null with a stream
  std::mutex mutex;                    // of the stream
  std::ostream* stream = nullptr;
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
  logger.backend_ = std::make_shared<Backend>();
  Backend& backend = *logger.backend_;
  backend.level = options.level;
  backend.stream = options.stream;
  if (options.stream != nullptr) {
    backend.look = std::make_shared<Backend::Look>(options.format, false);
    return logger;
  }
  LineWriter::Options writing;
  writing.fd = STDERR_FILENO;
  if (!options.file.empty()) {
    // If the folder cannot be made, the file cannot be opened either, and that error says it.
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(options.file).parent_path(), ignored);
    writing.fd = ::open(options.file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (writing.fd < 0) {
      const std::string message(ErrnoToStatus(errno, absl::StrCat("open log file ", options.file)).message());
      return absl::PermissionDeniedError(message);
    }
    writing.owns_fd = true;
  }
  const bool in_colour =
      options.file.empty() && ::isatty(STDERR_FILENO) == 1 && spdlog::details::os::is_color_terminal();
  backend.look = std::make_shared<Backend::Look>(options.format, in_colour);
  writing.dropped_text = [look = backend.look](uint64_t lines, double seconds) {
    return look->RenderDropped(lines, seconds);
  };
  backend.writer = std::make_unique<LineWriter>(writing);
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
  return backend_ != nullptr && level != LogLevel::kOff && level >= backend_->level;
}

void Logger::Log(LogLevel level, std::string_view message, const LogFields& fields) const {
  if (!Enabled(level)) return;
  LogFields traced;
  if (const TraceContext* trace = CurrentTrace()) {
    traced = fields;
    traced.emplace_back("trace_id", trace->trace_id);
  }
  backend_->Write({std::chrono::system_clock::now(), level, component_, message,
                   fields_ ? *fields_ : *NoFields(), traced.empty() ? fields : traced});
}

void Logger::Flush() const {
  if (backend_ != nullptr && backend_->writer != nullptr) backend_->writer->Flush();
}

}  // namespace atl
