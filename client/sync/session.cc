#include "client/sync/session.h"

#include <optional>

#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "common/planted_defect.h"
#include "common/status.h"
#include "core/manifest.h"

namespace atl {
namespace {

/// What an epoch, a configuration or a part of the data that changed under a worker means for it.
absl::Status Void(std::string_view what) {
  return WithRejection(
      absl::AbortedError(
          absl::StrFormat("%s while this worker was away; its local progress is dropped", std::string(what))),
      RejectionReason::kWrongEpoch);
}

}  // namespace

absl::StatusOr<JoinedRun> Session::Describe() {
  JoinCall question = parameters_;
  question.manifest_hash.clear();
  question.manifest.reset();
  ATOLL_ASSIGN_OR_RETURN(JoinedRun info, connection_->Join(question));
  parameters_.expected_run = info.member.run_id;
  return info;
}

absl::Status Session::Join(const std::string& manifest_hash) {
  parameters_.manifest_hash = manifest_hash;
  return JoinOver(*connection_);
}

void Session::ReportOtherModel(const JoinedRun& described) {
  const ExternalOptions* const external = described.run.model.external();
  const bool size_known = external != nullptr && external->parameters != 0;
  // The coordinator would take this model for a run that has none and says nothing of its size.
  if ((described.manifest_hash.empty() && !size_known) || !parameters_.manifest.has_value()) return;
  static_cast<void>(Join(ManifestHash(*parameters_.manifest)));
}

absl::Status Session::JoinOver(CoordinatorConnection& connection) {
  auto joined = connection.Join(parameters_);
  if (!joined.ok()) return joined.status();
  {
    const MutexLock lock(&mutex_);
    info_ = *std::move(joined);
  }
  context_.worker_status->SetMember(info_.member, info_.seed_granted);
  context_.observer->OnJoined(info_, joined_);
  joined_ = true;
  parameters_.expected_run = info_.member.run_id;
  context_.log.Debug("joined", {{"run", info_.run.name},
                                {"incarnation", info_.member.incarnation.value()},
                                {"returning", info_.returning},
                                {"seed_granted", info_.seed_granted}});
  return absl::OkStatus();
}

absl::Status Session::Reconfigure() {
  ATOLL_ASSIGN_OR_RETURN(const JoinedRun described, Describe());
  if (described.member.epoch != info_.member.epoch) return Void("the run was restored");
  info_.run = described.run;
  info_.config_version = described.config_version;
  info_.fragments = described.fragments;
  context_.log.Info("the run has a new configuration", {{"config_version", info_.config_version}});
  return absl::OkStatus();
}

absl::Status Session::Rejoin(const absl::Status& cause) { return RejoinAs(member(), cause); }

MemberRef Session::member() const {
  const MutexLock lock(&mutex_);
  return info_.member;
}

absl::Status Session::RejoinAs(const MemberRef& used, const absl::Status& cause,
                               CoordinatorConnection* over) {
  const MutexLock joining(&joining_);
  if (restart_pending_) return Void("the run went on without it");
  if (used != member()) return absl::OkStatus();
  const JoinedRun before = Snapshot();
  context_.log.Warning("no longer a member, joining again", {{"because", Explain(cause)}});
  ATOLL_RETURN_IF_ERROR(JoinOver(over != nullptr ? *over : *connection_));
  const absl::Status goes_on = CheckContinues(before, Snapshot());
  restart_pending_ = !goes_on.ok();
  return goes_on;
}

bool Session::IsSupersededByItself(const MemberRef& used, const absl::Status& failure) {
  if (RejectionReasonOf(failure) != RejectionReason::kSuperseded) return false;
  if (Planted(PlantedDefect::kSupersedesItself)) return false;
  const MutexLock joining(&joining_);
  return used != member();
}

absl::Status Session::SettledMembership(const WorkerCommands& commands) {
  if (RejectionReasonOf(commands.membership) != RejectionReason::kSuperseded) return commands.membership;
  const MutexLock joining(&joining_);
  return context_.worker_status->commands().membership;
}

JoinedRun Session::Snapshot() const {
  const MutexLock lock(&mutex_);
  return info_;
}

absl::Status Session::CheckContinues(const JoinedRun& before, const JoinedRun& now) {
  if (now.member.epoch != before.member.epoch) return Void("the run was restored");
  if (now.config_version != before.config_version) return Void("the run's configuration changed");
  const auto partition = [](const JoinedRun& info) {
    return info.data.has_value() ? std::optional(info.data->partition) : std::nullopt;
  };
  if (partition(now) != partition(before)) return Void("the worker's part of the data went to another");
  return absl::OkStatus();
}

absl::Status Session::CheckMembership(const WorkerCommands& commands) {
  const absl::Status membership = SettledMembership(commands);
  if (membership.ok()) return absl::OkStatus();
  if (ReactionTo(membership) == Reaction::kRejoin) return Rejoin(membership);
  return membership;
}

void Session::Leave(const std::string& reason) {
  if (!joined_) return;
  EnterPhase(context_, WorkerPhase::kLeaving);
  const absl::Status left = connection_->Leave(info_.member, reason);
  if (left.ok()) {
    context_.log.Info("left the run", {{"reason", reason}});
  } else if (RejectionReasonOf(left) == RejectionReason::kNotAMember) {
    context_.log.Info("the coordinator had removed this worker; nothing to leave", {{"reason", reason}});
  } else {
    context_.log.Warning("could not say goodbye; the lease will end by itself", {{"error", Explain(left)}});
  }
}

}  // namespace atl
