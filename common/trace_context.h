#ifndef ATOLL_COMMON_TRACE_CONTEXT_H_
#define ATOLL_COMMON_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

/// Identifies one piece of work across processes: W3C Trace Context (www.w3.org/TR/trace-context), the header
/// `traceparent`. Each exchange of a worker and each command of an operator is a trace; each call in it is a
/// span. Spans are not collected: the ids only connect the log lines of one piece of work.
struct TraceContext {
  std::string trace_id;  // 32 lower-case hexadecimal digits, not all 0
  std::string span_id;   // 16, of the caller
  uint8_t flags = 0;     // passed on as they came; bit 0: sampled
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// Creates a new trace.
TraceContext NewTrace();
/// The same trace with a new span.
TraceContext NextSpan(const TraceContext& trace);

/// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
std::string FormatTraceparent(const TraceContext& trace);
/// nullopt if the specification calls the text invalid: wrong lengths, upper case, all-zero ids, version ff.
/// Of a version above 00, reads the first four fields.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

/// Sets the current trace of this thread while it lives, then restores the previous one. Loggers add
/// `trace_id` to each line, events store it, our clients send it. The trace is per thread, because calls pass
/// through classes that do not use it. Work that moves to another thread must pass the trace explicitly.
class ScopedTrace {
 public:
  explicit ScopedTrace(TraceContext trace);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;

  const TraceContext& trace() const { return trace_; }

 private:
  const TraceContext trace_;
  const TraceContext* const before_;
};

/// The current trace; null if there is none. Valid while its scope lives.
const TraceContext* CurrentTrace();
/// The id of the current trace; empty if there is none.
std::string CurrentTraceId();

}  // namespace atl

#endif  // ATOLL_COMMON_TRACE_CONTEXT_H_
