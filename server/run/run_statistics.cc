#include "server/run/run_statistics.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include "core/codec.h"
#include "core/known_loss.h"
#include "core/schedule.h"

namespace atl {
namespace {

// Rounds kept in memory for GetStatus, whose history is at most as long.
constexpr size_t kKeptRounds = 1000;
// Rounds that the pace is taken from.
constexpr size_t kPaceRounds = 8;
constexpr FragmentId kCounted{0};

RoundSummaryView Summarise(const RoundRecord& record, uint64_t tokens, const ModelOptions& model) {
  RoundSummaryView summary;
  summary.fragment = record.fragment;
  summary.version = record.version;
  summary.contributions = static_cast<uint32_t>(record.contributions.size());
  summary.train_loss = MeanLoss(record, model);
  summary.tokens = tokens;
  summary.committed_tokens = record.committed_tokens;
  for (const Contribution& contribution : record.contributions)
    summary.payload_bytes += contribution.payload_bytes;
  summary.close_reason = record.close_reason;
  summary.closed_unix_ns = record.closed_unix_ns;
  return summary;
}

/// The version of whose contents `restore` made a new one; `before`: the fragment's earlier records. Their
/// parameters tell; where a record of an earlier release is without them, the tokens do.
Version SourceOf(const RoundRecord& restore, std::span<const RoundRecord> before) {
  std::optional<Version> by_tokens;
  for (auto record = before.rbegin(); record != before.rend() && record->fragment == restore.fragment;
       ++record) {
    if (restore.parameters != ContentHash() && record->parameters == restore.parameters)
      return record->version;
    if (!by_tokens && record->committed_tokens == restore.committed_tokens) by_tokens = record->version;
  }
  return by_tokens.value_or(Version(0));
}

template <typename T>
void KeepNewest(std::deque<T>& items, size_t count) {
  while (items.size() > count) items.pop_front();
}

}  // namespace

uint64_t ParametersIn(const FragmentLayout& layout) {
  uint64_t elements = 0;
  for (const TensorSlot& slot : layout.slots) elements += slot.elements;
  return elements;
}

double MeanLoss(const RoundRecord& record, const ModelOptions& model) {
  double sum = 0, weight = 0;
  for (size_t i = 0; i < record.contributions.size() && i < record.weights.size(); ++i) {
    const double loss = record.contributions[i].mean_loss;
    // Records of earlier releases hold whatever a worker claimed. 0 is a loss that is not known.
    if (loss == 0 || !IsLossOf(model, loss)) continue;
    sum += static_cast<double>(record.weights[i]) * loss;
    weight += static_cast<double>(record.weights[i]);
  }
  return weight > 0 ? sum / weight : 0;
}

uint64_t RunStatistics::TokensOf(FragmentId fragment, const std::vector<Contribution>& contributions) const {
  if (fragment != kCounted) return 0;
  uint64_t tokens = 0;
  for (const Contribution& contribution : contributions) tokens += contribution.tokens;
  return tokens;
}

void RunStatistics::Account(const RoundRecord& record, const FragmentLayout& layout) {
  if (record.fragment == kCounted) committed_tokens_ = record.committed_tokens;  // a restore may lower them
  fragment_tokens_[record.fragment] = record.committed_tokens;
  for (const Contribution& contribution : record.contributions) {
    // Data-parallel training sends and receives one float32 gradient per inner step.
    data_parallel_bytes_ += uint64_t{contribution.steps} * 2 * sizeof(float) * ParametersIn(layout);
  }
}

void RunStatistics::Restore(const std::vector<RoundRecord>& rounds,
                            const std::vector<EvaluationEntry>& evaluations,
                            const std::vector<FragmentLayout>& layouts) {
  std::map<FragmentId, int64_t> last_closed;
  std::set<std::pair<FragmentId, WorkerName>> followers;
  std::vector<RoundSummaryView> summaries;
  for (const RoundRecord& record : rounds) {
    if (record.fragment.value() >= layouts.size()) continue;
    const FragmentLayout& layout = layouts[record.fragment.value()];
    Account(record, layout);
    if (record.contributions.empty()) {  // a restore
      const std::span<const RoundRecord> before(rounds.data(), &record - rounds.data());
      ancestries_[record.fragment].Restored(record.version, SourceOf(record, before));
      continue;
    }
    RoundSummaryView summary =
        Summarise(record, TokensOf(record.fragment, record.contributions), configs_->run().model);
    push_bytes_ += summary.payload_bytes;
    // One pull for each contribution, which is not on record: a worker's first is whole, those after it
    // deltas.
    for (const Contribution& contribution : record.contributions) {
      const bool follows = !followers.emplace(record.fragment, contribution.key.worker).second;
      const CodecKind codec = follows ? configs_->run().pull_delta.value_or(configs_->run().pull_codec)
                                      : configs_->run().pull_codec;
      pull_bytes_ += CodecFor(codec).EncodedSize(layout.elements);
    }
    if (const auto it = last_closed.find(record.fragment); it != last_closed.end()) {
      summary.open_seconds = std::max(0.0, static_cast<double>(record.closed_unix_ns - it->second) * 1e-9);
    }
    last_closed[record.fragment] = record.closed_unix_ns;
    summaries.push_back(std::move(summary));
  }
  std::ranges::stable_sort(summaries, {}, &RoundSummaryView::closed_unix_ns);
  rounds_.assign(summaries.begin(), summaries.end());
  KeepNewest(rounds_, kKeptRounds);
  for (const EvaluationEntry& entry : evaluations) {
    AddEvaluation({.version = entry.version,
                   .loss = entry.loss,
                   .tokens = entry.tokens,
                   .unix_ns = entry.unix_ns,
                   .tasks = entry.tasks});
  }
}

RoundSummaryView RunStatistics::Close(const RoundRecord& record, const FragmentLayout& layout,
                                      double open_seconds, double commit_seconds,
                                      std::optional<double> idle_seconds) {
  Account(record, layout);
  RoundSummaryView summary =
      Summarise(record, TokensOf(record.fragment, record.contributions), configs_->run().model);
  summary.open_seconds = open_seconds;
  summary.commit_seconds = commit_seconds;
  rounds_.push_back(summary);
  KeepNewest(rounds_, kKeptRounds);
  if (record.fragment == kCounted && idle_seconds) {
    own_.push_back(summary);
    own_.back().open_seconds = std::max(0.0, open_seconds - *idle_seconds);
    KeepNewest(own_, kPaceRounds);
  }
  return summary;
}

void RunStatistics::Restored(uint64_t committed_tokens, const std::vector<RestoredFragment>& fragments) {
  for (const RestoredFragment& one : fragments) ancestries_[one.fragment].Restored(one.version, one.source);
  committed_tokens_ = restored_tokens_ = committed_tokens;
  fragment_tokens_.clear();
  own_.clear();
}

uint64_t RunStatistics::committed_tokens(FragmentId fragment) const {
  const auto it = fragment_tokens_.find(fragment);
  return it == fragment_tokens_.end() ? restored_tokens_ : it->second;
}

double RunStatistics::CommitSeconds() const {
  double seconds = 0;
  for (const RoundSummaryView& round : own_) seconds += round.commit_seconds;
  return own_.empty() ? 0 : seconds / static_cast<double>(own_.size());
}

bool RunStatistics::IsAncestorOfHead(FragmentId fragment, Version version) const {
  const auto it = ancestries_.find(fragment);
  return it == ancestries_.end() || it->second.IsAncestorOfHead(version);
}

bool RunStatistics::AddEvaluation(const EvaluationView& evaluation) {
  return evaluations_.emplace(evaluation.version, evaluation).second;
}

double RunStatistics::Pace(double open_seconds) const {
  double tokens = 0;
  double seconds = 0;
  for (const RoundSummaryView& round : own_) {
    tokens += static_cast<double>(round.tokens);
    seconds += round.open_seconds + round.commit_seconds;
  }
  if (!own_.empty()) seconds += std::max(0.0, open_seconds - seconds / static_cast<double>(own_.size()));
  return seconds > 0 ? tokens / seconds : 0;
}

double RunStatistics::EtaSeconds(double pace) const {
  if (pace <= 0 || budget_spent()) return 0;
  return static_cast<double>(configs_->run().total_tokens() - committed_tokens_) / pace;
}

double RunStatistics::PositionSteps() const {
  return SchedulePosition(configs_->run(), static_cast<double>(committed_tokens_));
}

void RunStatistics::Describe(uint32_t history, StatusView& status) const {
  status.committed_tokens = committed_tokens_;
  status.total_tokens = configs_->run().total_tokens();
  status.position_steps = PositionSteps();
  status.total_steps = configs_->run().total_steps();
  status.learning_rate = LearningRateAt(configs_->run(), status.position_steps);
  status.push_bytes = push_bytes_;
  status.pull_bytes = pull_bytes_;
  status.data_parallel_bytes = data_parallel_bytes_;
  status.last_closed_unix_ns = rounds_.empty() ? 0 : rounds_.back().closed_unix_ns;
  status.rounds.clear();
  status.evaluations.clear();
  status.abandoned_evaluations.clear();
  status.scored.reset();
  for (auto it = rounds_.rbegin(); it != rounds_.rend() && status.rounds.size() < history; ++it) {
    if (IsAncestorOfHead(it->fragment, it->version)) status.rounds.push_back(*it);
  }
  std::ranges::reverse(status.rounds);
  for (auto it = evaluations_.rbegin(); it != evaluations_.rend(); ++it) {
    std::vector<EvaluationView>& line =
        IsAncestorOfHead(kCounted, it->first) ? status.evaluations : status.abandoned_evaluations;
    if (!status.scored && !it->second.tasks.empty() && &line == &status.evaluations)
      status.scored = it->second;
    if (status.evaluations.size() < history && line.size() < history) line.push_back(it->second);
  }
  std::ranges::reverse(status.evaluations);
  std::ranges::reverse(status.abandoned_evaluations);
  if (!evaluations_.empty()) status.first_evaluation = evaluations_.begin()->second;
}

}  // namespace atl
