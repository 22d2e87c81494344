#include "common/trace_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/thread.h"

namespace atl {
namespace {

constexpr size_t kTraceIdBytes = 16;
constexpr size_t kSpanIdBytes = 8;
// version 2, trace id 32, span id 16, flags 2, and three dashes.
constexpr size_t kLength = 55;
constexpr size_t kTraceIdAt = 3;
constexpr size_t kSpanIdAt = 36;
constexpr size_t kFlagsAt = 53;

std::string RandomId(size_t bytes) {
  std::string id = RandomBytes(bytes);
  while (id == std::string(bytes, '\0')) id = RandomBytes(bytes);
  return ToHex(id);
}

bool IsLowerHex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view digits) {
  return std::ranges::all_of(digits, [](char c) { return c == '0'; });
}

}  // namespace

TraceContext NewTrace() { return {.trace_id = RandomId(kTraceIdBytes), .span_id = RandomId(kSpanIdBytes)}; }

TraceContext NextSpan(const TraceContext& trace) {
  return {.trace_id = trace.trace_id, .span_id = RandomId(kSpanIdBytes), .flags = trace.flags};
}

std::string FormatTraceparent(const TraceContext& trace) {
  return absl::StrFormat("00-%s-%s-%02x", trace.trace_id, trace.span_id, trace.flags);
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  if (!IsLowerHex(version) || version == "ff") return std::nullopt;
  const bool newer = version != "00";
  if (text.size() > kLength && !(newer && text[kLength] == '-')) return std::nullopt;
  if (text[kTraceIdAt - 1] != '-' || text[kSpanIdAt - 1] != '-' || text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace_id = text.substr(kTraceIdAt, 2 * kTraceIdBytes);
  const std::string_view span_id = text.substr(kSpanIdAt, 2 * kSpanIdBytes);
  const std::string_view flags = text.substr(kFlagsAt, 2);
  if (!IsLowerHex(trace_id) || !IsLowerHex(span_id) || !IsLowerHex(flags)) return std::nullopt;
  if (IsZero(trace_id) || IsZero(span_id)) return std::nullopt;
  return TraceContext{.trace_id = std::string(trace_id),
                      .span_id = std::string(span_id),
                      .flags = static_cast<uint8_t>(FromHex(flags)->front())};
}

ScopedTrace::ScopedTrace(TraceContext trace) : trace_(std::move(trace)), before_(CurrentTrace()) {
  ThreadTraceSlot() = &trace_;
}

ScopedTrace::~ScopedTrace() { ThreadTraceSlot() = before_; }

const TraceContext* CurrentTrace() { return static_cast<const TraceContext*>(ThreadTraceSlot()); }

std::string CurrentTraceId() {
  const TraceContext* const current = CurrentTrace();
  return current == nullptr ? std::string() : current->trace_id;
}

}  // namespace atl
