#include "common/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace fault_point_internal {

std::atomic<bool> armed = false;

namespace {

// Written before any thread is started, never freed.
std::string* name_to_die_at = nullptr;
std::atomic<uint64_t> passages_left = 0;

}  // namespace

void Pass(std::string_view name) {
  if (name != *name_to_die_at) return;
  if (passages_left.fetch_sub(1) != 1) return;
  ::kill(::getpid(), SIGKILL);
  // The signal may end this thread a moment later, so wait here.
  while (true) ::pause();
}

}  // namespace fault_point_internal

absl::Status ArmFaultPoint(std::string_view spec) {
  using fault_point_internal::armed;
  armed.store(false);
  if (spec.empty()) return absl::OkStatus();
  const size_t colon = spec.rfind(':');
  uint64_t count = 0;
  if (colon == std::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(std::string(spec.substr(colon + 1)), &count) || count == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "fault point \"%s\": expected name:count, with a count of at least 1", std::string(spec)));
  }
  delete fault_point_internal::name_to_die_at;
  fault_point_internal::name_to_die_at = new std::string(spec.substr(0, colon));
  fault_point_internal::passages_left.store(count);
  armed.store(true);
  return absl::OkStatus();
}

}  // namespace atl
