#include "server/rpc/decode_admin.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr double kLongestAgeSeconds = 1e9;

absl::Status NoSuchAction(int number) {
  return absl::InvalidArgumentError(
      absl::StrFormat("action: %d is none of the actions in atoll/v1/admin.proto", number));
}

}  // namespace

ConfirmationQuery DecodeConfirmationQuery(const v1::ListConfirmationsRequest& request) {
  ConfirmationQuery query{.fragment = FragmentId(request.fragment()),
                          .first = Version(request.first_version()),
                          .last = Version(request.has_last_version() ? request.last_version() : ~uint64_t{0}),
                          .limit = request.limit()};
  if (request.has_after()) {
    query.after = {.version = Version(request.after().version()), .worker = request.after().worker()};
  }
  return query;
}

absl::StatusOr<ReadParametersCall> DecodeReadParameters(const v1::ReadParametersRequest& request) {
  ReadParametersCall call{.checkpoint = request.checkpoint(), .outer_state = request.outer_state()};
  if (request.has_version()) call.version = Version(request.version());
  // Without a name it would be the newest version, which is something else.
  if (request.has_checkpoint() && call.checkpoint.empty()) {
    return absl::InvalidArgumentError("checkpoint: is empty");
  }
  return call;
}

absl::Status CheckReason(const std::string& reason) {
  if (reason.size() <= kMaxReasonBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("reason: %d bytes are too many; at most %d are kept", reason.size(), kMaxReasonBytes));
}

absl::StatusOr<RunAction> DecodeRunAction(const v1::ControlRunRequest& request) {
  ATOLL_RETURN_IF_ERROR(CheckReason(request.reason()));
  switch (request.action()) {
    case v1::ControlRunRequest::PAUSE:
      return RunAction::kPause;
    case v1::ControlRunRequest::RESUME:
      return RunAction::kResume;
    case v1::ControlRunRequest::STOP:
      return RunAction::kStop;
    case v1::ControlRunRequest::CLOSE_ROUND:
      return RunAction::kCloseRound;
    case v1::ControlRunRequest::RESET_DATASET:
      return RunAction::kResetDataset;
    default:
      return NoSuchAction(request.action());
  }
}

absl::StatusOr<ControlWorkerCall> DecodeControlWorker(const v1::ControlWorkerRequest& request) {
  ATOLL_RETURN_IF_ERROR(CheckReason(request.reason()));
  const int action = request.action();
  const bool by_age = action == v1::ControlWorkerRequest::FORGET && request.has_older_than_s();
  if (request.worker().empty() != by_age) {
    return absl::InvalidArgumentError(by_age ? "worker: is set beside older_than_s; give one of them"
                                             : "worker: is empty; name one");
  }
  if (by_age && !(request.older_than_s() >= 0 && request.older_than_s() <= kLongestAgeSeconds)) {
    return absl::InvalidArgumentError(absl::StrFormat("older_than_s: is %g; 0 to %g are allowed",
                                                      request.older_than_s(), kLongestAgeSeconds));
  }
  if (action < static_cast<int>(WorkerAction::kDrain) || action > static_cast<int>(WorkerAction::kForget)) {
    return NoSuchAction(action);
  }
  ControlWorkerCall call{.worker = request.worker(),
                         .action = static_cast<WorkerAction>(action),
                         .at_once = request.at_once(),
                         .reason = request.reason()};
  if (by_age) call.older_than = Seconds(request.older_than_s());
  return call;
}

static_assert(static_cast<int>(WorkerAction::kDrain) == v1::ControlWorkerRequest::DRAIN &&
              static_cast<int>(WorkerAction::kRestart) == v1::ControlWorkerRequest::RESTART &&
              static_cast<int>(WorkerAction::kEvict) == v1::ControlWorkerRequest::EVICT &&
              static_cast<int>(WorkerAction::kBan) == v1::ControlWorkerRequest::BAN &&
              static_cast<int>(WorkerAction::kUnban) == v1::ControlWorkerRequest::UNBAN &&
              static_cast<int>(WorkerAction::kResync) == v1::ControlWorkerRequest::RESYNC &&
              static_cast<int>(WorkerAction::kForget) == v1::ControlWorkerRequest::FORGET);

absl::StatusOr<std::vector<ConfigSetting>> DecodeSettings(const v1::SetConfigRequest& request) {
  if (request.settings_size() > kMaxSettings) {
    return absl::InvalidArgumentError(absl::StrFormat("settings: %d are too many at once; at most %d",
                                                      request.settings_size(), kMaxSettings));
  }
  std::vector<ConfigSetting> settings;
  for (const v1::Setting& setting : request.settings()) settings.push_back({setting.path(), setting.value()});
  return settings;
}

}  // namespace atl
