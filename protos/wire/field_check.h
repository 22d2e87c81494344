#ifndef ATOLL_PROTOS_WIRE_FIELD_CHECK_H_
#define ATOLL_PROTOS_WIRE_FIELD_CHECK_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"

// What the conversions of calls and replies do with fields that make no sense, or are too long.

namespace atl {

/// Bounds of docs/reference/wire_format.md.
inline constexpr size_t kMaxTextBytes = 1024;  // what a worker says of itself, each
/// Of LeaveRequest.reason, which an event stores.
inline constexpr size_t kMaxLeaveReasonBytes = 200;

/// A field of a call that no call could mean: InvalidArgument.
absl::Status BadField(std::string_view field, std::string_view what);
/// A reply that no coordinator of ours sends: InvalidArgument.
absl::Status BadReply(std::string_view what);

/// BadField when a text that is kept, or shown to others, is longer than kMaxTextBytes.
absl::Status CheckText(std::string_view field, const std::string& text);

/// Text that is only shown is not refused: the first `most` bytes of what is Printable() of it, up to the
/// end of a character of UTF-8.
std::string ShownText(const std::string& text, size_t most = kMaxTextBytes);

/// A number of seconds from outside, as a duration from 0 to a year.
Duration BoundedSeconds(double seconds);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_FIELD_CHECK_H_
