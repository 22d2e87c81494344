#include "server/web/run_history.h"

#include <algorithm>

#include "server/admin/admin_control.h"

namespace atl {
namespace {

// Events of the past that are read at the start. More than are kept: comings and goings may be far apart.
constexpr uint64_t kEventsRead = 20'000;
constexpr int kRoundReads = 4;  // of kMaxListedRounds each, in one Follow

bool IsMilestone(EventKind kind) {
  switch (kind) {
    case EventKind::kWorkerJoined:
    case EventKind::kWorkerReturned:
    case EventKind::kWorkerLeft:
    case EventKind::kWorkerLost:
    case EventKind::kWorkerBanned:
    case EventKind::kRunPaused:
    case EventKind::kRunResumed:
    case EventKind::kRunRestored:
    case EventKind::kCoordinatorStarted:
      return true;
    default:
      return false;
  }
}

template <typename T>
void Keep(std::deque<T>& kept, const T& value, size_t most) {
  kept.push_back(value);
  if (kept.size() > most) kept.pop_front();
}

}  // namespace

RunHistory::RunHistory(Coordinator* coordinator, const Clock* clock)
    : coordinator_(coordinator), clock_(clock) {
  const uint64_t last = coordinator_->GetStatus(0).last_event_sequence;
  const uint64_t after = last > kEventsRead ? last - kEventsRead : 0;
  const uint64_t id = coordinator_->Subscribe(after, [this](const EventView& event) { return Take(event); });
  MutexLock lock(&mutex_);
  subscription_ = id;
}

RunHistory::~RunHistory() { Stop(); }

void RunHistory::Stop() {
  uint64_t id = 0;
  {
    MutexLock lock(&mutex_);
    std::swap(id, subscription_);
  }
  if (id != 0) coordinator_->Unsubscribe(id);
}

bool RunHistory::Take(const EventView& event) {
  MutexLock lock(&mutex_);
  Keep(events_, event, kEvents);
  if (IsMilestone(event.kind)) Keep(milestones_, event, kMilestones);
  if (event.kind == EventKind::kRoundClosed || event.kind == EventKind::kRunRestored) rounds_closed_ = true;
  return true;
}

void RunHistory::Follow() {
  FollowRounds();
  SampleTraffic();
}

void RunHistory::FollowRounds() {
  for (int i = 0; i < kRoundReads; ++i) {
    Version after;
    {
      MutexLock lock(&mutex_);
      if (!rounds_closed_) return;
      rounds_closed_ = false;
      after = curve_.last();
    }
    const auto read = coordinator_->admin().ListRounds(FragmentId(0), after, kMaxListedRounds);
    if (!read.ok()) return;  // not seeded yet, or going down
    MutexLock lock(&mutex_);
    for (const RoundDetailView& round : read->rounds) curve_.Add(round);
    if (!read->rounds.empty() && curve_.last() < read->head) rounds_closed_ = true;
  }
}

void RunHistory::SampleTraffic() {
  const MonoTime now = clock_->Now();
  if (sampled_ != MonoTime{} && now - sampled_ < kTrafficPeriod) return;
  sampled_ = now;
  const StatusView status = coordinator_->GetStatus(0);
  MutexLock lock(&mutex_);
  Keep(traffic_,
       TrafficPoint{.unix_ns = clock_->WallNow().time_since_epoch().count(),
                    .push_bytes = status.push_bytes,
                    .pull_bytes = status.pull_bytes},
       kTrafficPoints);
}

std::vector<EventView> RunHistory::Events(uint64_t after, size_t limit) const {
  MutexLock lock(&mutex_);
  auto first = std::ranges::upper_bound(events_, after, {}, &EventView::sequence);
  const auto found = static_cast<size_t>(events_.end() - first);
  if (found > limit) first += static_cast<std::ptrdiff_t>(found - limit);
  return {first, events_.end()};
}

std::vector<EventView> RunHistory::Milestones() const {
  MutexLock lock(&mutex_);
  return {milestones_.begin(), milestones_.end()};
}

std::vector<TrafficPoint> RunHistory::Traffic() const {
  MutexLock lock(&mutex_);
  return {traffic_.begin(), traffic_.end()};
}

std::string RunHistory::Curve(const std::vector<EvaluationView>& evaluations) const {
  LossCurve curve;
  {
    MutexLock lock(&mutex_);
    curve = curve_;
  }
  return CurveJson(curve, evaluations);
}

}  // namespace atl
