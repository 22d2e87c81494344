#include "server/web/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/known_loss.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

using nlohmann::json;

/// Enough to draw with; NaN and infinity are no JSON.
json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * 1e5) / 1e5;
}

double UnixSeconds(int64_t unix_ns) { return std::round(static_cast<double>(unix_ns) * 1e-8) / 10; }

struct Anchor {
  Version version;
  uint64_t committed_tokens = 0;
};

/// Points and restores in order of version.
std::vector<Anchor> Anchors(const LossCurve& curve, const std::vector<CurvePoint>& points) {
  std::vector<Anchor> anchors;
  for (const CurvePoint& point : points) anchors.push_back({point.version, point.committed_tokens});
  for (const CurveRestore& restore : curve.restores()) {
    anchors.push_back({restore.version, restore.committed_tokens});
  }
  std::ranges::sort(anchors, {}, &Anchor::version);
  return anchors;
}

/// Tokens behind a version, by the straight line between the anchors round it.
std::optional<double> TokensAt(const std::vector<Anchor>& anchors, Version version) {
  if (version == Version(0)) return 0;
  const auto above = std::ranges::lower_bound(anchors, version, {}, &Anchor::version);
  if (above == anchors.end()) return std::nullopt;
  const bool first = above == anchors.begin();
  const double low_version = first ? 0 : static_cast<double>(std::prev(above)->version.value());
  const double low_tokens = first ? 0 : static_cast<double>(std::prev(above)->committed_tokens);
  const double share = (static_cast<double>(version.value()) - low_version) /
                       (static_cast<double>(above->version.value()) - low_version);
  return std::round(low_tokens + share * (static_cast<double>(above->committed_tokens) - low_tokens));
}

json Validation(const LossCurve& curve, const std::vector<CurvePoint>& points,
                const std::vector<EvaluationView>& evaluations) {
  json columns = {{"version", json::array()}, {"tokens", json::array()},    {"unixSeconds", json::array()},
                  {"epoch", json::array()},   {"abandoned", json::array()}, {"loss", json::array()}};
  const std::vector<Anchor> anchors = Anchors(curve, points);
  for (const EvaluationView& evaluation : evaluations) {
    const std::optional<double> tokens = TokensAt(anchors, evaluation.version);
    if (!tokens) continue;  // its round is not drawn yet
    columns["epoch"].push_back(std::ranges::count_if(curve.restores(), [&](const CurveRestore& restore) {
      return restore.version <= evaluation.version;
    }));
    columns["abandoned"].push_back(
        curve.Abandoned(evaluation.version, static_cast<uint64_t>(std::max(0.0, *tokens))));
    columns["version"].push_back(evaluation.version.value());
    columns["tokens"].push_back(*tokens);
    columns["unixSeconds"].push_back(UnixSeconds(evaluation.unix_ns));
    columns["loss"].push_back(Rounded(evaluation.loss));
  }
  return columns;
}

/// A series for each metric of each task.
json Tasks(const LossCurve& curve, const std::vector<CurvePoint>& points,
           const std::vector<EvaluationView>& evaluations) {
  std::map<std::pair<std::string, std::string>, json> series;
  const std::vector<Anchor> anchors = Anchors(curve, points);
  for (const EvaluationView& evaluation : evaluations) {
    const std::optional<double> tokens = TokensAt(anchors, evaluation.version);
    if (!tokens) continue;  // its round is not drawn yet
    for (const TaskScore& score : evaluation.tasks) {
      json& one = series[{score.task, score.metric}];
      one["version"].push_back(evaluation.version.value());
      one["tokens"].push_back(*tokens);
      one["unixSeconds"].push_back(UnixSeconds(evaluation.unix_ns));
      one["abandoned"].push_back(
          curve.Abandoned(evaluation.version, static_cast<uint64_t>(std::max(0.0, *tokens))));
      one["value"].push_back(score.value);
      one["error"].push_back(score.standard_error);
      one["questions"].push_back(score.questions);
    }
  }
  json list = json::array();
  for (auto& [name, one] : series) {
    one["task"] = name.first;
    one["metric"] = name.second;
    list.push_back(std::move(one));
  }
  return list;
}

json Restores(const LossCurve& curve) {
  json list = json::array();
  for (const CurveRestore& restore : curve.restores()) {
    list.push_back({{"version", restore.version.value()},
                    {"tokens", restore.committed_tokens},
                    {"unixSeconds", UnixSeconds(restore.unix_ns)},
                    {"reason", restore.reason}});
  }
  return list;
}

}  // namespace

size_t LossCurve::IndexOf(const WorkerName& worker) {
  const auto it = std::ranges::find(workers_, worker);
  if (it != workers_.end()) return static_cast<size_t>(it - workers_.begin());
  if (workers_.size() < kMostWorkers) workers_.push_back(worker);
  return static_cast<size_t>(std::ranges::find(workers_, worker) - workers_.begin());
}

void LossCurve::Join(Group& group, const Group& next) {
  group.sum.version = next.sum.version;
  group.sum.committed_tokens = next.sum.committed_tokens;
  group.sum.unix_ns = next.sum.unix_ns;
  group.sum.loss += next.sum.loss;
  group.rounds += next.rounds;
  group.sum.workers.resize(std::max(group.sum.workers.size(), next.sum.workers.size()));
  group.parts.resize(group.sum.workers.size());
  group.known += next.known;
  for (size_t i = 0; i < next.sum.workers.size(); ++i) {
    group.sum.workers[i] += next.sum.workers[i];
    group.parts[i] += next.parts[i];
  }
}

void LossCurve::Add(const RoundDetailView& round) {
  last_ = round.summary.version;
  if (round.contributions.empty()) {
    ++epoch_;
    restores_.push_back({.version = round.summary.version,
                         .committed_tokens = round.summary.committed_tokens,
                         .unix_ns = round.summary.closed_unix_ns,
                         .reason = round.summary.close_reason});
    if (restores_.size() > kMostRestores) restores_.erase(restores_.begin());
    return;
  }
  Group one{.sum = {.version = round.summary.version,
                    .committed_tokens = round.summary.committed_tokens,
                    .unix_ns = round.summary.closed_unix_ns,
                    .epoch = epoch_,
                    .loss = round.summary.train_loss,
                    .workers = {}},
            .rounds = 1,
            .known = round.summary.train_loss != 0 ? size_t{1} : size_t{0},
            .parts = {}};
  for (const RoundContributionView& contribution : round.contributions) {
    const size_t i = IndexOf(contribution.worker);
    if (i >= kMostWorkers || contribution.loss == 0) continue;
    one.sum.workers.resize(std::max(one.sum.workers.size(), i + 1));
    one.parts.resize(one.sum.workers.size());
    if (!IsPossibleLoss(contribution.loss)) continue;
    one.sum.workers[i] += contribution.loss;
    one.parts[i] += 1;
  }
  if (groups_.empty() || groups_.back().rounds >= stride_ || groups_.back().sum.epoch != epoch_) {
    groups_.push_back(std::move(one));
  } else {
    Join(groups_.back(), one);
  }
  if (groups_.size() > kMostPoints) Halve();
}

void LossCurve::Halve() {
  const size_t wider = 2 * stride_;
  bool any = false;
  std::vector<Group> halved;
  for (Group& group : groups_) {
    const bool joins = !halved.empty() && halved.back().sum.epoch == group.sum.epoch &&
                       halved.back().rounds + group.rounds <= wider;
    any |= joins;
    if (joins) {
      Join(halved.back(), group);
    } else {
      halved.push_back(std::move(group));
    }
  }
  if (any) {
    stride_ = wider;
  } else {
    halved.erase(halved.begin());  // a single point for every epoch: the oldest goes
  }
  groups_ = std::move(halved);
}

bool LossCurve::Abandoned(Version version, uint64_t committed_tokens) const {
  return std::ranges::any_of(restores_, [&](const CurveRestore& restore) {
    return version < restore.version && committed_tokens > restore.committed_tokens;
  });
}

CurvePoint LossCurve::Mean(const Group& group) {
  CurvePoint point = group.sum;
  point.loss = group.known > 0 ? point.loss / static_cast<double>(group.known)
                               : std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < point.workers.size(); ++i) {
    point.workers[i] = group.parts[i] > 0 ? point.workers[i] / static_cast<double>(group.parts[i])
                                          : std::numeric_limits<double>::quiet_NaN();
  }
  return point;
}

std::vector<CurvePoint> LossCurve::Points() const {
  std::vector<CurvePoint> points;
  points.reserve(groups_.size());
  for (const Group& group : groups_) {
    points.push_back(Mean(group));
    points.back().workers.resize(workers_.size(), std::numeric_limits<double>::quiet_NaN());
  }
  return points;
}

std::string CurveJson(const LossCurve& curve, const std::vector<EvaluationView>& evaluations) {
  const std::vector<CurvePoint> points = curve.Points();
  json out = {{"stride", curve.stride()},
              {"version", json::array()},
              {"tokens", json::array()},
              {"unixSeconds", json::array()},
              {"loss", json::array()},
              {"epoch", json::array()},
              {"abandoned", json::array()},
              {"workers", json::array()},
              {"restores", Restores(curve)},
              {"validation", Validation(curve, points, evaluations)},
              {"tasks", Tasks(curve, points, evaluations)}};
  for (const CurvePoint& point : points) {
    out["version"].push_back(point.version.value());
    out["tokens"].push_back(point.committed_tokens);
    out["unixSeconds"].push_back(UnixSeconds(point.unix_ns));
    out["loss"].push_back(Rounded(point.loss));
    out["epoch"].push_back(point.epoch);
    out["abandoned"].push_back(curve.Abandoned(point.version, point.committed_tokens));
  }
  for (size_t i = 0; i < curve.workers().size(); ++i) {
    json column = json::array();
    for (const CurvePoint& point : points) column.push_back(Rounded(point.workers[i]));
    out["workers"].push_back({{"name", curve.workers()[i]}, {"loss", std::move(column)}});
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace atl
