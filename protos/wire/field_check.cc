#include "protos/wire/field_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/printable.h"

namespace atl {

absl::Status BadField(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", std::string(what)));
}

absl::Status BadReply(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("the coordinator's answer makes no sense: %s", std::string(what)));
}

absl::Status CheckText(std::string_view field, const std::string& text) {
  if (text.size() <= kMaxTextBytes) return absl::OkStatus();
  return BadField(field, absl::StrFormat("has %d bytes; at most %d are kept", text.size(), kMaxTextBytes));
}

std::string ShownText(const std::string& text, size_t most) {
  std::string shown = Printable(text);
  if (shown.size() <= most) return shown;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
  return shown.substr(0, end);
}

Duration BoundedSeconds(double seconds) {
  constexpr double kYear = 366.0 * 24 * 3600;
  return std::isfinite(seconds) ? Seconds(std::clamp(seconds, 0.0, kYear)) : Duration::zero();
}

}  // namespace atl
