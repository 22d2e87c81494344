#include "cli/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace atl {
namespace {

constexpr char kAnswerUrl[] = "atoll.cli.answer";
constexpr char kCodeUrl[] = "atoll.cli.exit_code";

}  // namespace

absl::Status FromCoordinator(absl::Status status) {
  if (!status.ok()) status.SetPayload(kAnswerUrl, absl::Cord());
  return status;
}

bool IsFromCoordinator(const absl::Status& status) { return status.GetPayload(kAnswerUrl).has_value(); }

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  status.SetPayload(kCodeUrl, absl::Cord(absl::StrCat(ToInt(code))));
  return status;
}

ExitCode CommandExitCode(const absl::Status& status) {
  int code = 0;
  if (const auto payload = status.GetPayload(kCodeUrl);
      payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code)) {
    return static_cast<ExitCode>(code);
  }
  const bool answered = IsFromCoordinator(status);
  if (answered && (absl::IsNotFound(status) || absl::IsUnimplemented(status))) return ExitCode::kRejected;
  return answered ? DefaultExitCode(status) : LocalExitCode(status);
}

}  // namespace atl
