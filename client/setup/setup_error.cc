#include "client/setup/setup_error.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace atl {
namespace {

constexpr char kExitCodeUrl[] = "atoll.exit-code";

}  // namespace

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (!status.ok()) status.SetPayload(kExitCodeUrl, absl::Cord(std::to_string(ToInt(code))));
  return status;
}

std::optional<ExitCode> GivenExitCode(const absl::Status& status) {
  const auto payload = status.GetPayload(kExitCodeUrl);
  int code = 0;
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code))
    return static_cast<ExitCode>(code);
  return std::nullopt;
}

ExitCode SetupExitCode(const absl::Status& status) {
  return GivenExitCode(status).value_or(LocalExitCode(status));
}

}  // namespace atl
