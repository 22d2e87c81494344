#include "client/sync/worker_status.h"

#include <algorithm>
#include <utility>

namespace atl {

void WorkerStatus::SetMember(const MemberRef& member, bool seed_granted) {
  const MutexLock lock(&mutex_);
  // Those that wait were signed for the epoch before, and would look forged in this one.
  if (member_.has_value() && member_->epoch != member.epoch) confirmations_.clear();
  member_ = member;
  commands_.membership = absl::OkStatus();
  commands_.seed_granted = seed_granted;
}

std::optional<MemberRef> WorkerStatus::member() const {
  const MutexLock lock(&mutex_);
  return member_;
}

void WorkerStatus::Update(const std::function<void(ProgressReport&)>& change) {
  const MutexLock lock(&mutex_);
  change(progress_);
}

void WorkerStatus::SetPhase(WorkerPhase phase, const std::string& waiting_for) {
  const MutexLock lock(&mutex_);
  progress_.phase = phase;
  progress_.waiting_for = waiting_for;
}

void WorkerStatus::AwaitCoordinator(const std::string& waiting_for) {
  const MutexLock lock(&mutex_);
  progress_.waiting_for = awaited_ = waiting_for;
}

bool WorkerStatus::CoordinatorAnswers() {
  const MutexLock lock(&mutex_);
  const std::string awaited = std::exchange(awaited_, "");
  if (awaited.empty() || progress_.waiting_for != awaited) return false;
  progress_.waiting_for.clear();
  return true;
}

void WorkerStatus::NoteStep(uint64_t tokens, Duration took, const ComputeCost& cost) {
  const MutexLock lock(&mutex_);
  rate_.Add(tokens, took);
  progress_.tokens_per_second = rate_.tokens_per_second();
  progress_.model_flops_per_second = progress_.tokens_per_second * cost.flops_per_token;
  progress_.peak_flops_per_second = cost.peak_flops_per_second;
}

ProgressReport WorkerStatus::WithTime(ProgressReport progress) const {
  if (training_time_ != nullptr) progress.training = training_time_->spent();
  if (exchange_time_ != nullptr) progress.exchanges = exchange_time_->spent();
  return progress;
}

ProgressReport WorkerStatus::progress() const {
  ProgressReport progress;
  {
    const MutexLock lock(&mutex_);
    progress = progress_;
  }
  return WithTime(std::move(progress));
}

void WorkerStatus::AddEvaluation(const EvaluationReport& report) {
  const MutexLock lock(&mutex_);
  evaluations_.push_back(report);
}

void WorkerStatus::DropAbove(const std::vector<FragmentHead>& heads) {
  const MutexLock lock(&mutex_);
  for (const FragmentHead& head : heads) {
    std::erase_if(confirmations_, [&](const Confirmation& one) {
      return one.fragment == head.id && one.version > head.version;
    });
    if (head.id != FragmentId(0)) continue;
    std::erase_if(evaluations_, [&](const EvaluationReport& one) { return one.version > head.version; });
  }
}

std::vector<EvaluationReport> WorkerStatus::evaluations() const {
  const MutexLock lock(&mutex_);
  return evaluations_;
}

void WorkerStatus::AddConfirmation(const Confirmation& confirmation) {
  const MutexLock lock(&mutex_);
  if (confirmations_.size() == kConfirmationsKept) confirmations_.erase(confirmations_.begin());
  confirmations_.push_back(confirmation);
}

HeartbeatCall WorkerStatus::Report() const {
  HeartbeatCall report;
  {
    const MutexLock lock(&mutex_);
    report = {progress_, evaluations_, confirmations_};
    if (secret_losses_) report.progress.loss = report.progress.gradient_norm = 0;
  }
  report.progress = WithTime(std::move(report.progress));
  return report;
}

void WorkerStatus::HideLosses(bool secret) {
  const MutexLock lock(&mutex_);
  secret_losses_ = secret;
}

void WorkerStatus::ReportDelivered(const HeartbeatCall& report) {
  const MutexLock lock(&mutex_);
  const auto forget = [](auto& mine, const auto& delivered) {
    std::erase_if(mine, [&](const auto& one) {
      return std::find(delivered.begin(), delivered.end(), one) != delivered.end();
    });
  };
  forget(evaluations_, report.evaluations);
  forget(confirmations_, report.confirmations);
}

void WorkerStatus::FollowRunState(RunState state) {
  if (state == RunState::kUnknown) return;
  commands_.paused = state == RunState::kPaused;
  commands_.run_stopped = state == RunState::kStopped;
}

void WorkerStatus::NoteRunState(RunState state) {
  const MutexLock lock(&mutex_);
  FollowRunState(state);
}

void WorkerStatus::Receive(const MemberRef& member, const HeartbeatReply& reply) {
  const MutexLock lock(&mutex_);
  if (member_ != member) return;
  commands_.membership = absl::OkStatus();
  commands_.seed_granted = reply.seed_granted;
  FollowRunState(reply.state);
  switch (reply.command) {
    case WorkerCommand::kNone:
      break;
    case WorkerCommand::kDrain:
      commands_.drain = true;
      commands_.at_once |= reply.at_once;
      commands_.restart = false;
      break;
    case WorkerCommand::kRestart:
      // A worker that leaves permanently does not come back.
      commands_.restart |= !commands_.drain;
      commands_.drain = true;
      commands_.at_once |= reply.at_once;
      break;
    case WorkerCommand::kStop:
      commands_.stop = true;
      break;
    case WorkerCommand::kResync:
      commands_.resync = true;
      break;
  }
}

void WorkerStatus::HeartbeatRejected(const MemberRef& member, const absl::Status& rejection) {
  const MutexLock lock(&mutex_);
  if (member_ == member) commands_.membership = rejection;
}

bool WorkerStatus::RequestDrain() {
  const MutexLock lock(&mutex_);
  // An evaluation too is lost with a stop, and in overlapped mode the steps around it.
  const bool busy = progress_.phase == WorkerPhase::kTraining || progress_.phase == WorkerPhase::kPushing ||
                    progress_.phase == WorkerPhase::kEvaluating;
  if (!busy) return false;
  commands_.drain = commands_.at_once = true;
  commands_.restart = false;
  return true;
}

void WorkerStatus::RequestStop() {
  const MutexLock lock(&mutex_);
  commands_.stop = true;
}

void WorkerStatus::Distrust(const absl::Status& why) {
  const MutexLock lock(&mutex_);
  distrust_ = why;
}

WorkerCommands WorkerStatus::commands() const {
  const MutexLock lock(&mutex_);
  WorkerCommands commands = commands_;
  if (!distrust_.ok()) commands.membership = distrust_;
  return commands;
}

void WorkerStatus::Done(bool WorkerCommands::*command) {
  const MutexLock lock(&mutex_);
  commands_.*command = false;
}

}  // namespace atl
