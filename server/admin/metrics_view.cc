#include "server/admin/metrics_view.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>

#include "core/membership.h"
#include "server/all_evaluations.h"
#include "server/run/run_statistics.h"

namespace atl {
namespace {

/// Of what a worker says of its time, no more than the run is old: it could claim any weight otherwise.
TimeSpent WithinRun(TimeSpent spent, double run_seconds) {
  const double total = spent.total();
  if (total <= run_seconds || run_seconds <= 0) return spent;
  for (double& seconds : spent.seconds) seconds *= run_seconds / total;
  return spent;
}

// Evaluations that the slope is taken from: the pace now, not that of the warmup.
constexpr size_t kSlopePoints = 20;

std::vector<LossPoint> LastPoints(const StatusView& status) {
  std::map<Version, uint64_t> tokens = {{Version(0), 0}};
  for (const RoundSummaryView& round : status.rounds) {
    if (round.fragment == FragmentId(0)) tokens[round.version] = round.committed_tokens;
  }
  std::vector<LossPoint> points;
  for (const EvaluationView& evaluation : status.evaluations) {
    const auto it = tokens.find(evaluation.version);
    if (it == tokens.end()) continue;
    points.push_back({.million_tokens = static_cast<double>(it->second) * 1e-6, .loss = evaluation.loss});
  }
  if (points.size() > kSlopePoints) points.erase(points.begin(), points.end() - kSlopePoints);
  return points;
}

void FillRounds(const StatusView& status, MetricsView& view) {
  double open = 0;
  double commit = 0;
  double count = 0;
  for (const RoundSummaryView& round : status.rounds) {
    if (round.fragment != FragmentId(0)) continue;
    open += round.open_seconds + round.commit_seconds;
    commit += round.commit_seconds;
    count += 1;
    view.train_loss = round.train_loss;
  }
  if (count == 0) return;
  view.round_seconds_mean = open / count;
  view.commit_seconds_mean = commit / count;
}

}  // namespace

double LossSlope(std::span<const LossPoint> points) {
  if (points.size() < 2) return 0;
  const auto n = static_cast<double>(points.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const LossPoint& point : points) {
    mean_x += point.million_tokens / n;
    mean_y += point.loss / n;
  }
  double covariance = 0;
  double variance = 0;
  for (const LossPoint& point : points) {
    const double dx = point.million_tokens - mean_x;
    covariance += dx * (point.loss - mean_y);
    variance += dx * dx;
  }
  return variance > 0 ? covariance / variance : 0;
}

double ComputeUtilisation(std::span<const WorkerView> workers, double run_seconds) {
  TimeSpent live;
  TimeSpent all;
  for (const WorkerView& worker : workers) {
    if (worker.role != static_cast<uint8_t>(WorkerRole::kTrainer)) continue;
    const TimeSpent training = WithinRun(worker.progress.training, run_seconds);
    all.Add(training);
    if (worker.state == "active") live.Add(training);
  }
  return UtilisationOf(live.total() > 0 ? live : all);
}

double RunSeconds(const StatusView& status, int64_t created_unix_ns, int64_t now_unix_ns) {
  const bool over = status.state == RunState::kFinished || status.state == RunState::kStopped;
  const int64_t end = over && status.last_closed_unix_ns > 0 ? status.last_closed_unix_ns : now_unix_ns;
  return std::max(0.0, static_cast<double>(end - created_unix_ns) * 1e-9);
}

MetricsView SummariseRun(const StatusView& status, std::span<const WorkerView> workers, double wall_seconds) {
  MetricsView view;
  view.wall_seconds = wall_seconds;
  view.committed_tokens = status.committed_tokens;
  view.total_tokens = status.total_tokens;
  if (!status.fragments.empty()) view.version = status.fragments.front().version;
  FillRounds(status, view);
  if (!status.evaluations.empty()) {
    view.validation_loss = status.evaluations.back().loss;
    view.best_validation_loss = std::ranges::min(status.evaluations, {}, &EvaluationView::loss).loss;
  }
  view.loss_slope_per_million_tokens = LossSlope(LastPoints(status));
  view.tokens_per_second = status.tokens_per_second;
  view.compute_utilisation = ComputeUtilisation(workers, wall_seconds);
  view.push_bytes = status.push_bytes;
  view.pull_bytes = status.pull_bytes;
  view.data_parallel_bytes = status.data_parallel_bytes;
  const uint64_t moved = status.push_bytes + status.pull_bytes;
  if (moved > 0) {
    view.communication_reduction =
        static_cast<double>(status.data_parallel_bytes) / static_cast<double>(moved);
  }
  view.live_trainers = status.live_trainers;
  return view;
}

MetricsView MetricsOf(const CoordinatorContext& context) {
  const MonoTime now = context.clock->Now();
  const int64_t unix_ns = context.clock->WallNow().time_since_epoch().count();
  // The best evaluation may be any of them.
  const StatusView status = context.state->views().Status(std::numeric_limits<uint32_t>::max(), now);
  return SummariseRun(status, context.state->views().Workers(/*all=*/status.live_trainers == 0, now),
                      RunSeconds(status, context.identity.created_unix_ns, unix_ns));
}

absl::Status ExportMetricsOf(RunStore* store, const StatusView& status, const RecordedRuns& runs,
                             const AdminControl::MetricSink& sink) {
  std::vector<std::unique_ptr<MetricSource>> sources;
  for (const FragmentStatusView& fragment : status.fragments) {
    sources.push_back(std::make_unique<RoundSource>(store, fragment.id, fragment.version, runs));
  }
  sources.push_back(std::make_unique<DurationSource>(store));
  sources.push_back(std::make_unique<EvaluationSource>(store, AllEvaluations(status)));
  return ExportInOrder(std::move(sources), sink);
}

}  // namespace atl
