#include "server/run/config_history.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"
#include "common/status.h"
#include "core/schedule.h"

namespace atl {
namespace {

std::string BudgetText(uint64_t tokens) { return HumanCount(static_cast<double>(tokens)); }

constexpr std::string_view kInnerSteps = "inner.steps";
constexpr std::string_view kRounds = "run.rounds";
constexpr std::string_view kPlannedTokens = "run.planned_tokens";

// What the coordinator reads at the opening of a round or whenever it is needed, and what workers read again
// when a plan names a newer configuration than theirs.
constexpr auto kChangeable = std::to_array<std::string_view>({"inner.steps",
                                                              "inner.pace",
                                                              "inner.learning_rate",
                                                              "inner.min_learning_rate_ratio",
                                                              "inner.warmup_steps",
                                                              "inner.beta1",
                                                              "inner.beta2",
                                                              "inner.epsilon",
                                                              "inner.weight_decay",
                                                              "inner.momentum",
                                                              "inner.clip_norm",
                                                              "inner.precision",
                                                              "inner.recompute_activations",
                                                              "model.gpt.dropout",
                                                              "model.llama.dropout",
                                                              "outer.learning_rate",
                                                              "outer.momentum",
                                                              "outer.beta1",
                                                              "outer.beta2",
                                                              "outer.epsilon",
                                                              "merge.weights",
                                                              "merge.method",
                                                              "merge.trim",
                                                              "merge.clip_radius",
                                                              "merge.clip_iterations",
                                                              "merge.norm_guard",
                                                              "merge.sparse_average",
                                                              "round.deadline_s",
                                                              "round.quorum",
                                                              "round.minimum",
                                                              "round.grace_s",
                                                              "round.grace",
                                                              "round.mode",
                                                              "round.lease_s",
                                                              "round.staleness_limit",
                                                              "sync.delay_steps",
                                                              "sync.answer",
                                                              "sync.alpha",
                                                              "sync.max_in_flight",
                                                              "codec.push",
                                                              "codec.error_feedback",
                                                              "codec.error_feedback_beta",
                                                              "codec.error_feedback_form",
                                                              "codec.error_feedback_reset",
                                                              "codec.allow_momentum_with_topk",
                                                              "evaluation.by",
                                                              "evaluation.every",
                                                              "evaluation.batches",
                                                              "evaluation.tasks",
                                                              "evaluation.tasks_every",
                                                              "checkpoint.keep_versions",
                                                              "checkpoint.every",
                                                              "checkpoint.keep",
                                                              "checkpoint.keep_every",
                                                              "limits.max_workers",
                                                              "limits.contribution_budget_mib",
                                                              "limits.joins_per_s",
                                                              "limits.forget_workers_after_h",
                                                              "offenders.ban_after",
                                                              "offenders.within",
                                                              "offenders.norm",
                                                              "offenders.distance",
                                                              "offenders.cosine",
                                                              "offenders.measure"});

absl::Status CheckChangeable(const std::string& path) {
  if (std::ranges::find(kChangeable, path) != kChangeable.end()) return absl::OkStatus();
  if (path == "round.start_workers") {
    return absl::FailedPreconditionError(
        "round.start_workers: cannot be set while the run goes on. To end the wait of its first round, start "
        "the coordinator again with a lower number in its --config, or close the round with `atollctl run "
        "close-round` once a contribution is there");
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: is settled when a run begins; docs/reference/configuration.md lists what may be "
                      "set while it goes on",
                      path));
}

/// The settings, and what has to be set with them. What is no number is refused by the codec, in its words.
std::vector<ConfigSetting> Completed(const std::vector<ConfigSetting>& settings, const RunOptions& run) {
  std::vector<ConfigSetting> all = settings;
  for (const ConfigSetting& setting : settings) {
    RunOptions changed = run;
    if (setting.path != kInnerSteps || !absl::SimpleAtoi(setting.value, &changed.inner.steps)) continue;
    if (changed.inner.steps == 0 || changed.inner.steps == run.inner.steps) continue;
    if (changed.tokens_per_round() == 0) continue;  // too many to be counted: the codec refuses them
    const uint64_t budget = run.total_tokens(), rounds = changed.rounds_for(budget);
    const bool whole = rounds * changed.tokens_per_round() == budget;
    all.push_back({std::string(kRounds), std::to_string(rounds)});
    all.push_back({std::string(kPlannedTokens), std::to_string(whole ? 0 : budget)});
    break;
  }
  return all;
}

/// The budget stays, but a last round that is longer than it would exceed it without end.
absl::Status CheckRoundFits(const RunOptions& before, const RunOptions& after) {
  const uint64_t budget = before.total_tokens();
  if (after.inner.steps == before.inner.steps || after.tokens_per_round() <= budget) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "inner.steps: one round of %d steps would have %s tokens, %.3g times the token budget of the whole run "
      "(%s); at most %d steps",
      after.inner.steps, BudgetText(after.tokens_per_round()),
      static_cast<double>(after.tokens_per_round()) / static_cast<double>(budget), BudgetText(budget),
      budget / after.tokens_per_position()));
}

std::vector<std::string> Texts(const std::vector<ConfigChange>& changes) {
  std::vector<std::string> texts;
  for (const ConfigChange& change : changes) texts.push_back(ConfigChangeText(change));
  return texts;
}

}  // namespace

absl::StatusOr<ConfigHistory::Proposal> ConfigHistory::Propose(const std::vector<ConfigSetting>& settings,
                                                               uint64_t expected_version,
                                                               const std::string& author,
                                                               int64_t now_unix_ns) const {
  const ConfigEntry& newest = recorded_.back();
  if (codec_ == nullptr)
    return absl::FailedPreconditionError("this coordinator cannot change configurations");
  if (settings.empty()) {
    return absl::InvalidArgumentError("settings: there is nothing to set; give path and value");
  }
  for (const ConfigSetting& setting : settings) {
    if (setting.path == kRounds || setting.path == kPlannedTokens) {
      return absl::FailedPreconditionError(
          setting.path +
          ": is not set but extended, with `atollctl run extend ROUNDS`, which shows what becomes "
          "of the "
          "learning rate");
    }
  }
  ATOLL_RETURN_IF_ERROR(CheckVersion(expected_version));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions before, codec_->Parse(newest.bytes));
  std::vector<ConfigChange> changes;
  auto next = Next(Completed(settings, before), author, now_unix_ns, changes);
  if (!next.ok()) {
    ATOLL_RETURN_IF_ERROR(CheckWithoutBudget(settings));
    return next.status();
  }
  Proposal proposal = *std::move(next);
  if (changes.empty()) {
    return Proposal{.entry = newest,
                    .snapshot = std::make_shared<const ConfigSnapshot>(
                        ConfigSnapshot{.version = newest.version, .bytes = newest.bytes, .run = before}),
                    .changes = {}};
  }
  for (const ConfigChange& change : changes) {
    if (change.path == kRounds || change.path == kPlannedTokens) continue;
    ATOLL_RETURN_IF_ERROR(CheckChangeable(change.path));
  }
  ATOLL_RETURN_IF_ERROR(CheckRoundFits(before, proposal.snapshot->run));
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].path != kRounds) continue;
    proposal.changes[i] += absl::StrFormat(" (with inner.steps, so that the token budget stays %s tokens)",
                                           BudgetText(before.total_tokens()));
  }
  return proposal;
}

absl::Status ConfigHistory::CheckWithoutBudget(const std::vector<ConfigSetting>& settings) const {
  std::vector<ConfigSetting> all = settings;
  all.push_back({std::string(kPlannedTokens), "0"});
  const auto applied = codec_->Apply(recorded_.back().bytes, all);
  if (!applied.ok()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> changes,
                         codec_->Diff(recorded_.back().bytes, *applied));
  for (const ConfigChange& change : changes) {
    if (change.path != kPlannedTokens) ATOLL_RETURN_IF_ERROR(CheckChangeable(change.path));
  }
  return absl::OkStatus();
}

std::map<uint64_t, RunOptions> ConfigHistory::Runs() const {
  std::map<uint64_t, RunOptions> runs;
  for (const ConfigEntry& entry : recorded_) {
    if (codec_ == nullptr) break;
    // One of another version of the program may not be readable.
    if (const auto run = codec_->Parse(entry.bytes); run.ok()) runs.emplace(entry.version, *run);
  }
  return runs;
}

absl::Status ConfigHistory::CheckVersion(uint64_t expected) const {
  const ConfigEntry& newest = recorded_.back();
  if (expected == 0 || expected == newest.version) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrFormat("expected_version: %d, but version %d (by %s) is in force; look at what changed and "
                      "set again",
                      expected, newest.version, newest.author));
}

absl::StatusOr<ConfigHistory::Proposal> ConfigHistory::ProposeExtension(uint32_t rounds, double position,
                                                                        uint64_t expected_version,
                                                                        const std::string& author,
                                                                        int64_t now_unix_ns) const {
  if (codec_ == nullptr)
    return absl::FailedPreconditionError("this coordinator cannot change configurations");
  if (rounds == 0) return absl::InvalidArgumentError("rounds: give at least 1 to extend the run by");
  ATOLL_RETURN_IF_ERROR(CheckVersion(expected_version));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions before, codec_->Parse(recorded_.back().bytes));
  if (rounds > std::numeric_limits<uint32_t>::max() - before.rounds) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rounds: %d more than %d are too many", rounds, before.rounds));
  }
  const RunOptions after = Extended(before, rounds, position);
  std::vector<ConfigChange> changes;
  return Next({{std::string(kRounds), std::to_string(after.rounds)},
               {"run.extended_at_step", absl::StrFormat("%.17g", after.extension.at_step)},
               {"run.extended_from", absl::StrFormat("%.17g", after.extension.from)},
               {"run.extended_steps", std::to_string(after.extension.steps_added)},
               {std::string(kPlannedTokens), std::to_string(after.planned_tokens)}},
              author, now_unix_ns, changes);
}

absl::StatusOr<ConfigHistory::Proposal> ConfigHistory::Next(const std::vector<ConfigSetting>& settings,
                                                            const std::string& author, int64_t now_unix_ns,
                                                            std::vector<ConfigChange>& changes) const {
  const ConfigEntry& newest = recorded_.back();
  Proposal proposal;
  proposal.entry = {
      .version = newest.version + 1, .recorded_unix_ns = now_unix_ns, .author = author, .bytes = {}};
  ATOLL_ASSIGN_OR_RETURN(proposal.entry.bytes, codec_->Apply(newest.bytes, settings));
  ATOLL_ASSIGN_OR_RETURN(changes, codec_->Diff(newest.bytes, proposal.entry.bytes));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions after, codec_->Parse(proposal.entry.bytes));
  proposal.changes = Texts(changes);
  proposal.snapshot = std::make_shared<const ConfigSnapshot>(
      ConfigSnapshot{.version = proposal.entry.version, .bytes = proposal.entry.bytes, .run = after});
  return proposal;
}

absl::StatusOr<std::vector<ConfigView>> ConfigHistory::List() const {
  std::vector<ConfigView> views;
  for (size_t i = 0; i < recorded_.size(); ++i) {
    const ConfigEntry& entry = recorded_[i];
    ConfigView& view = views.emplace_back(ConfigView{.version = entry.version,
                                                     .bytes = entry.bytes,
                                                     .unix_ns = entry.recorded_unix_ns,
                                                     .author = entry.author,
                                                     .changes = {}});
    if (i == 0 || codec_ == nullptr) continue;
    ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> changes,
                           codec_->Diff(recorded_[i - 1].bytes, entry.bytes));
    view.changes = Texts(changes);
  }
  return views;
}

}  // namespace atl
