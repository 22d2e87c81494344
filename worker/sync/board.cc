#include "worker/sync/board.h"

#include <algorithm>

namespace atoll {

void Board::SetMember(const MemberRef& member, bool seed_granted) {
  const MutexLock lock(&mutex_);
  member_ = member;
  orders_.membership = absl::OkStatus();
  orders_.seed_granted = seed_granted;
}

std::optional<MemberRef> Board::member() const {
  const MutexLock lock(&mutex_);
  return member_;
}

void Board::Update(const std::function<void(ProgressReport&)>& change) {
  const MutexLock lock(&mutex_);
  change(progress_);
}

void Board::SetPhase(WorkerPhase phase, const std::string& waiting_for) {
  const MutexLock lock(&mutex_);
  progress_.phase = phase;
  progress_.waiting_for = waiting_for;
}

void Board::Spend(TimeUse use, Duration time) {
  const double seconds = ToSeconds(time);
  const MutexLock lock(&mutex_);
  switch (use) {
    case TimeUse::kCompute:
      progress_.compute_seconds += seconds;
      break;
    case TimeUse::kExchange:
      progress_.exchange_seconds += seconds;
      break;
    case TimeUse::kWait:
      progress_.wait_seconds += seconds;
      break;
  }
}

ProgressReport Board::progress() const {
  const MutexLock lock(&mutex_);
  return progress_;
}

void Board::AddEvaluation(const EvaluationReport& report) {
  const MutexLock lock(&mutex_);
  evaluations_.push_back(report);
}

std::vector<EvaluationReport> Board::evaluations() const {
  const MutexLock lock(&mutex_);
  return evaluations_;
}

void Board::EvaluationsDelivered(std::span<const EvaluationReport> delivered) {
  const MutexLock lock(&mutex_);
  std::erase_if(evaluations_, [&](const EvaluationReport& report) {
    return std::find(delivered.begin(), delivered.end(), report) != delivered.end();
  });
}

void Board::Receive(const MemberRef& member, const HeartbeatOrders& orders) {
  const MutexLock lock(&mutex_);
  if (member_ != member) return;
  orders_.membership = absl::OkStatus();
  orders_.seed_granted = orders.seed_granted;
  switch (orders.command) {
    case WorkerCommand::kNone:
      break;
    // A restart is a clean exit here: whoever started this process starts it again.
    case WorkerCommand::kDrain:
    case WorkerCommand::kRestart:
      orders_.drain = true;
      break;
    case WorkerCommand::kStop:
      orders_.stop = true;
      break;
    case WorkerCommand::kResync:
      orders_.resync = true;
      break;
  }
}

void Board::HeartbeatRefused(const MemberRef& member, const absl::Status& refusal) {
  const MutexLock lock(&mutex_);
  if (member_ == member) orders_.membership = refusal;
}

void Board::RequestStop() {
  const MutexLock lock(&mutex_);
  orders_.stop = true;
}

Orders Board::orders() const {
  const MutexLock lock(&mutex_);
  return orders_;
}

void Board::ResyncDone() {
  const MutexLock lock(&mutex_);
  orders_.resync = false;
}

void Board::SeedGrantUsed() {
  const MutexLock lock(&mutex_);
  orders_.seed_granted = false;
}

}  // namespace atoll
