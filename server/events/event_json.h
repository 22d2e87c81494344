#ifndef ATOLL_SERVER_EVENTS_EVENT_JSON_H_
#define ATOLL_SERVER_EVENTS_EVENT_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/views.h"

namespace atl {

/// An event as the store keeps it: one JSON object, keys as the fields of EventView, absent where empty. Keys
/// that are not known are ignored when read, so that an older coordinator can read a newer one's events.
std::string EncodeEvent(const EventView& event);
/// DataLoss when it is not what EncodeEvent writes.
absl::StatusOr<EventView> DecodeEvent(std::string_view bytes);

}  // namespace atl

#endif  // ATOLL_SERVER_EVENTS_EVENT_JSON_H_
