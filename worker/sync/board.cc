#include "worker/sync/board.h"

#include <algorithm>
#include <utility>

namespace atoll {

void Board::SetMember(const MemberRef& member, bool seed_granted) {
  const MutexLock lock(&mutex_);
  // Those that wait were signed for the epoch before, and would look forged in this one.
  if (member_.has_value() && member_->epoch != member.epoch) confirmations_.clear();
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

void Board::AwaitCoordinator(const std::string& waiting_for) {
  const MutexLock lock(&mutex_);
  progress_.waiting_for = awaited_ = waiting_for;
}

bool Board::CoordinatorAnswers() {
  const MutexLock lock(&mutex_);
  const std::string awaited = std::exchange(awaited_, "");
  if (awaited.empty() || progress_.waiting_for != awaited) return false;
  progress_.waiting_for.clear();
  return true;
}

void Board::NoteStep(uint64_t tokens, Duration took) {
  const MutexLock lock(&mutex_);
  rate_.Add(tokens, took);
  progress_.tokens_per_second = rate_.tokens_per_second();
}

ProgressReport Board::WithTime(ProgressReport progress) const {
  if (training_time_ != nullptr) progress.training = training_time_->spent();
  if (exchange_time_ != nullptr) progress.exchanges = exchange_time_->spent();
  return progress;
}

ProgressReport Board::progress() const {
  ProgressReport progress;
  {
    const MutexLock lock(&mutex_);
    progress = progress_;
  }
  return WithTime(std::move(progress));
}

void Board::AddEvaluation(const EvaluationReport& report) {
  const MutexLock lock(&mutex_);
  evaluations_.push_back(report);
}

void Board::DropAbove(const std::vector<FragmentHead>& heads) {
  const MutexLock lock(&mutex_);
  for (const FragmentHead& head : heads) {
    std::erase_if(confirmations_, [&](const Confirmation& one) {
      return one.fragment == head.id && one.version > head.version;
    });
    if (head.id != FragmentId(0)) continue;
    std::erase_if(evaluations_, [&](const EvaluationReport& one) { return one.version > head.version; });
  }
}

std::vector<EvaluationReport> Board::evaluations() const {
  const MutexLock lock(&mutex_);
  return evaluations_;
}

void Board::AddConfirmation(const Confirmation& confirmation) {
  const MutexLock lock(&mutex_);
  if (confirmations_.size() == kConfirmationsKept) confirmations_.erase(confirmations_.begin());
  confirmations_.push_back(confirmation);
}

HeartbeatNews Board::News() const {
  HeartbeatNews news;
  {
    const MutexLock lock(&mutex_);
    news = {progress_, evaluations_, confirmations_};
    if (secret_losses_) news.progress.loss = news.progress.gradient_norm = 0;
  }
  news.progress = WithTime(std::move(news.progress));
  return news;
}

void Board::KeepLosses(bool secret) {
  const MutexLock lock(&mutex_);
  secret_losses_ = secret;
}

void Board::NewsDelivered(const HeartbeatNews& news) {
  const MutexLock lock(&mutex_);
  const auto forget = [](auto& mine, const auto& delivered) {
    std::erase_if(mine, [&](const auto& one) {
      return std::find(delivered.begin(), delivered.end(), one) != delivered.end();
    });
  };
  forget(evaluations_, news.evaluations);
  forget(confirmations_, news.confirmations);
}

void Board::FollowRunState(RunState state) {
  if (state == RunState::kUnknown) return;
  orders_.paused = state == RunState::kPaused;
  orders_.run_stopped = state == RunState::kStopped;
}

void Board::NoteRunState(RunState state) {
  const MutexLock lock(&mutex_);
  FollowRunState(state);
}

void Board::Receive(const MemberRef& member, const HeartbeatOrders& orders) {
  const MutexLock lock(&mutex_);
  if (member_ != member) return;
  orders_.membership = absl::OkStatus();
  orders_.seed_granted = orders.seed_granted;
  FollowRunState(orders.state);
  switch (orders.command) {
    case WorkerCommand::kNone:
      break;
    case WorkerCommand::kDrain:
      orders_.drain = true;
      orders_.at_once |= orders.at_once;
      orders_.restart = false;
      break;
    case WorkerCommand::kRestart:
      // Who is leaving for good does not come back.
      orders_.restart |= !orders_.drain;
      orders_.drain = true;
      orders_.at_once |= orders.at_once;
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

bool Board::RequestDrain() {
  const MutexLock lock(&mutex_);
  const bool busy = progress_.phase == WorkerPhase::kTraining || progress_.phase == WorkerPhase::kPushing;
  if (!busy) return false;
  orders_.drain = orders_.at_once = true;
  orders_.restart = false;
  return true;
}

void Board::RequestStop() {
  const MutexLock lock(&mutex_);
  orders_.stop = true;
}

void Board::Distrust(const absl::Status& why) {
  const MutexLock lock(&mutex_);
  distrust_ = why;
}

Orders Board::orders() const {
  const MutexLock lock(&mutex_);
  Orders orders = orders_;
  if (!distrust_.ok()) orders.membership = distrust_;
  return orders;
}

void Board::ResyncDone() {
  const MutexLock lock(&mutex_);
  orders_.resync = false;
}

void Board::SeedGrantUsed() {
  const MutexLock lock(&mutex_);
  orders_.seed_granted = false;
}

void Board::NotePush(const PushKey& push, PushOutcome outcome) {
  const MutexLock lock(&mutex_);
  if (outcome == PushOutcome::kCounted) {
    uncounted_.erase(push.fragment);
  } else {
    uncounted_.insert_or_assign(push.fragment, UncountedPush{push, outcome});
  }
}

std::optional<UncountedPush> Board::LastUncounted() const {
  const MutexLock lock(&mutex_);
  return uncounted_.empty() ? std::nullopt : std::optional(uncounted_.begin()->second);
}

}  // namespace atoll
