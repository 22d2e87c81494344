#ifndef ATOLL_COMMON_TRACE_CONTEXT_H_
#define ATOLL_COMMON_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

/// Which piece of work this is, across processes: W3C Trace Context (www.w3.org/TR/trace-context), the header
/// `traceparent`. An exchange of a worker is one trace, a command of an operator another; each call is a span
/// of it. Spans are not collected: the ids are for finding the log lines of one piece of work in every log.
struct TraceContext {
  std::string trace_id;  // 32 lower-case hexadecimal digits, not all 0
  std::string span_id;   // 16, of the caller
  uint8_t flags = 0;     // passed on as they came; bit 0: sampled
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// A trace that nobody has begun yet.
TraceContext NewTrace();
/// The same trace, and a span of our own.
TraceContext NextSpan(const TraceContext& trace);

/// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
std::string FormatTraceparent(const TraceContext& trace);
/// nullopt for whatever the specification calls invalid: other lengths, upper case, ids of zeros only,
/// version ff. Of a version above 00 what is known of it is read: the first four fields, if more follows.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

/// What this thread is working on, for as long as this lives; then what it was before. Loggers add `trace_id`
/// to each line, events carry it, our clients send it. It belongs to the thread, because a call passes
/// through classes that have no business with it; work that changes threads takes it along by hand.
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

/// Null: nothing that has a trace. Valid while its scope lives.
const TraceContext* CurrentTrace();
/// Of the current trace; empty: there is none.
std::string CurrentTraceId();

}  // namespace atl

#endif  // ATOLL_COMMON_TRACE_CONTEXT_H_
