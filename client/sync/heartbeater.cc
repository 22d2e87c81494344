#include "client/sync/heartbeater.h"

#include <algorithm>
#include <utility>

#include "client/sync/rejection.h"
#include "common/resident_bytes.h"

namespace atl {
namespace {

// Of a period: how often it is asked whether a heartbeat is due.
constexpr int kTicks = 4;

}  // namespace

absl::Status Heartbeater::Beat() {
  const auto member = context_.worker_status->member();
  if (!member.has_value()) return absl::OkStatus();
  HeartbeatCall report = context_.worker_status->Report();
  report.progress.memory_bytes = ResidentBytes().value_or(0);
  const auto reply = connection_->Heartbeat(*member, report);
  if (reply.ok()) {
    context_.worker_status->ReportDelivered(report);
    context_.worker_status->Receive(*member, *reply);
    if (reply->command != WorkerCommand::kNone && on_command_) on_command_();
    AdoptLease(reply->lease);
    Audit(*member, reply->lease);
    // This heartbeat still told of a wait that its answer has ended.
    if (context_.worker_status->CoordinatorAnswers()) Wake();
  } else if (const Reaction reaction = ReactionTo(reply.status());
             RejectionReasonOf(reply.status()) != RejectionReason::kNone &&
             (reaction == Reaction::kRejoin || reaction == Reaction::kExit)) {
    context_.worker_status->HeartbeatRejected(*member, reply.status());
  }
  // This side ended the call: that says nothing of the coordinator.
  if (!absl::IsCancelled(reply.status())) Complain(reply.status());
  return reply.status();
}

void Heartbeater::Audit(const MemberRef& member, Duration lease) {
  if (audit_ == nullptr) return;
  const absl::Status trusted = audit_->Compare(member, lease);
  if (trusted.ok()) return;
  context_.worker_status->Distrust(trusted);
  if (on_command_) on_command_();
}

void Heartbeater::Complain(const absl::Status& error) {
  bool was_failing = false;
  {
    const MutexLock lock(&mutex_);
    was_failing = std::exchange(failing_, !error.ok());
  }
  if (!error.ok() && !was_failing) {
    context_.log.Warning("heartbeats fail; training goes on", {{"error", Explain(error)}});
  } else if (error.ok() && was_failing) {
    context_.log.Info("heartbeats succeed again");
  }
}

void Heartbeater::AdoptLease(Duration lease) {
  const MutexLock lock(&mutex_);
  if (period_ <= Duration(0) || lease <= Duration(0)) return;
  due_after_ =
      static_cast<int>(std::clamp(kTicks * ToSeconds(lease / 3) / ToSeconds(period_), 1.0, double{kTicks}));
}

void Heartbeater::Start(Duration period) {
  const MutexLock lock(&mutex_);
  if (task_ != nullptr) return;
  period_ = period;
  due_after_ = kTicks;
  task_ = std::make_unique<PeriodicTask>("heartbeat", period / kTicks, [this] { Tick(); });
}

void Heartbeater::Tick() {
  {
    const MutexLock lock(&mutex_);
    const bool due = ++ticks_ >= due_after_ || woken_ || failing_;
    if (!due) return;
    ticks_ = 0;
    woken_ = false;
  }
  static_cast<void>(Beat());
}

void Heartbeater::Wake() {
  const MutexLock lock(&mutex_);
  woken_ = true;
  if (task_ != nullptr) task_->Wake();
}

void Heartbeater::Stop() {
  std::unique_ptr<PeriodicTask> task;
  {
    const MutexLock lock(&mutex_);
    task = std::move(task_);
  }
  if (task != nullptr) task->Stop();
}

}  // namespace atl
