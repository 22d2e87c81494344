#include "server/admin/metric_export.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/known_loss.h"
#include "core/schedule.h"
#include "server/events/event_json.h"
#include "server/run/run_statistics.h"

namespace atl {
namespace {

constexpr size_t kEventsPerRead = 256;

/// "round/tokens"; of a fragment other than the first "fragment/2/round/tokens".
std::string NameOf(FragmentId fragment, std::string_view name) {
  if (fragment == FragmentId(0)) return std::string(name);
  return absl::StrFormat("fragment/%d/%s", fragment.value(), std::string(name));
}

MetricPointView PointOf(const RoundRecord& record) {
  return {.name = "",
          .worker = "",
          .version = record.version,
          .committed_tokens = record.committed_tokens,
          .unix_ns = record.closed_unix_ns,
          .value = 0};
}

std::vector<MetricPointView> PointsOf(const RoundRecord& record, const RunOptions& run) {
  std::vector<MetricPointView> points;
  MetricPointView point = PointOf(record);
  const auto add = [&](std::string_view name, double value) {
    point.name = NameOf(record.fragment, name);
    point.value = value;
    points.push_back(point);
  };
  double tokens = 0;
  double bytes = 0;
  for (const Contribution& contribution : record.contributions) {
    tokens += static_cast<double>(contribution.tokens);
    bytes += static_cast<double>(contribution.payload_bytes);
  }
  // With privacy losses are not told: no point, rather than 0.
  if (const double loss = MeanLoss(record, run.model); loss != 0) add("train/loss", loss);
  add("train/learning_rate",
      LearningRateAt(run, SchedulePosition(run, static_cast<double>(record.committed_tokens))));
  add("round/contributions", static_cast<double>(record.contributions.size()));
  add("round/tokens", tokens);
  add("round/payload_bytes", bytes);
  add("round/config_version", static_cast<double>(record.config_version));
  add("outer/learning_rate", record.outer.learning_rate);
  add("outer/momentum", record.outer.momentum);
  for (size_t i = 0; i < record.contributions.size(); ++i) {
    const Contribution& contribution = record.contributions[i];
    point.worker = contribution.key.worker;
    const double loss = KnownLoss(run.model, contribution.mean_loss);
    if (loss != 0) add("worker/loss", loss);
    add("worker/norm", contribution.norm);
    add("worker/tokens", static_cast<double>(contribution.tokens));
    add("worker/steps", contribution.steps);
    add("worker/late_versions",
        static_cast<double>(record.version.value() - 1 - contribution.key.base.value()));
    if (i < record.weights.size()) add("worker/weight", record.weights[i]);
  }
  return points;
}

}  // namespace

absl::StatusOr<std::vector<MetricPointView>> RoundSource::Next() {
  while (last_ < head_) {
    last_ = atl::Next(last_);
    const auto record = store_->ReadRound(fragment_, last_);
    if (absl::IsNotFound(record.status())) continue;
    ATOLL_RETURN_IF_ERROR(record.status());
    return PointsOf(*record, runs_.At(record->config_version));
  }
  return std::vector<MetricPointView>();
}

absl::StatusOr<std::vector<MetricPointView>> DurationSource::Next() {
  while (true) {
    if (page_.empty()) {
      ATOLL_ASSIGN_OR_RETURN(const std::vector<EventEntry> read,
                             store_->ReadEvents(last_sequence_, kEventsPerRead));
      if (read.empty()) return std::vector<MetricPointView>();
      page_.assign(read.begin(), read.end());
      last_sequence_ = read.back().sequence;
    }
    const auto event = DecodeEvent(page_.front().bytes);
    page_.pop_front();
    // Skip unreadable events, as readers of the log do.
    if (!event.ok() || !event->round) continue;
    const RoundSummaryView& round = *event->round;
    MetricPointView point{.name = NameOf(round.fragment, "round/open_seconds"),
                          .worker = "",
                          .version = round.version,
                          .committed_tokens = round.committed_tokens,
                          .unix_ns = round.closed_unix_ns,
                          .value = round.open_seconds};
    std::vector<MetricPointView> points = {point};
    point.name = NameOf(round.fragment, "round/commit_seconds");
    point.value = round.commit_seconds;
    points.push_back(std::move(point));
    return points;
  }
}

EvaluationSource::EvaluationSource(RunStore* store, std::vector<EvaluationView> evaluations) : store_(store) {
  std::ranges::stable_sort(evaluations, {}, &EvaluationView::unix_ns);
  evaluations_.assign(evaluations.begin(), evaluations.end());
}

absl::StatusOr<std::vector<MetricPointView>> EvaluationSource::Next() {
  if (evaluations_.empty()) return std::vector<MetricPointView>();
  const EvaluationView evaluation = evaluations_.front();
  evaluations_.pop_front();
  MetricPointView point{.name = "validation/loss",
                        .worker = "",
                        .version = evaluation.version,
                        .committed_tokens = 0,
                        .unix_ns = evaluation.unix_ns,
                        .value = evaluation.loss};
  if (evaluation.version > Version(0)) {
    const auto record = store_->ReadRound(FragmentId(0), evaluation.version);
    if (record.ok()) point.committed_tokens = record->committed_tokens;
  }
  std::vector<MetricPointView> points = {point};
  for (const TaskScore& score : evaluation.tasks) {
    point.name = absl::StrFormat("task/%s/%s", score.task, score.metric);
    point.value = score.value;
    points.push_back(point);
  }
  return points;
}

absl::Status ExportInOrder(std::vector<std::unique_ptr<MetricSource>> sources,
                           const AdminControl::MetricSink& sink) {
  std::vector<std::vector<MetricPointView>> heads(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(heads[i], sources[i]->Next());
  }
  while (true) {
    std::optional<size_t> first;
    for (size_t i = 0; i < heads.size(); ++i) {
      if (heads[i].empty()) continue;
      if (!first || heads[i].front().unix_ns < heads[*first].front().unix_ns) first = i;
    }
    if (!first) return absl::OkStatus();
    for (const MetricPointView& point : heads[*first]) {
      if (!sink(point)) return absl::OkStatus();
    }
    ATOLL_ASSIGN_OR_RETURN(heads[*first], sources[*first]->Next());
  }
}

}  // namespace atl
