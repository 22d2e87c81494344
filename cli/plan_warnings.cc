#include "cli/plan_warnings.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/config_advice.h"
#include "cli/device_advice.h"
#include "common/human.h"
#include "core/data_passes.h"
#include "core/rank_limits.h"
#include "protos/config/check_rounds.h"

namespace atl {
namespace {

/// A setting that shortens the upload; empty if there is none without a cost in quality.
std::string SmallerPush(const RunOptions& run) {
  return BitsPerValue(run.push_codec) > BitsPerValue(CodecKind::kE3m0) ? "codec.push: e3m0" : "";
}

/// The same for the download. No sparse codec has a form for it, so e3m0 is the smallest.
std::string SmallerPull(const RunOptions& run) {
  const double bits = BitsPerValue(run.pull_delta.value_or(run.pull_codec));
  return bits > BitsPerValue(CodecKind::kE3m0) ? "codec.pull_delta: e3m0" : "";
}

/// Against exchanges that take long. `smaller`: a setting with fewer bytes; empty: none.
std::string ExchangeRemedy(const RunOptions& run, const std::string& smaller) {
  std::vector<std::string> remedies = {"more inner.steps"};
  if (!smaller.empty()) remedies.push_back(smaller);
  if (run.sync.mode == SyncMode::kBlocking && run.round.mode != RoundMode::kAsync) {
    remedies.emplace_back("sync.mode: overlapped");
  }
  return absl::StrCat(absl::StrJoin(remedies, ", or "), remedies.size() > 1 ? " help" : " helps");
}

/// The largest part of a round's time without inner steps, and a remedy. Empty if workers compute most of the
/// time.
std::optional<std::string> LostTime(const RunOptions& run, const RunPlan& plan) {
  const PlannedTime& time = plan.time;
  if (time.utilisation() <= 0 || time.utilisation() >= 0.8) return std::nullopt;
  struct Loss {
    double seconds;
    const char* what;
    std::string remedy;
  };
  constexpr char kEvaluation[] =
      "a larger evaluation.every, fewer evaluation.batches or evaluation.by: evaluator help";
  constexpr char kOwn[] = "more inner.steps help";
  const Loss evaluation = {time.evaluate_s, "evaluation", kEvaluation};
  const Loss own = {time.own_s, "a worker's own work (encoding, saving, copies)", kOwn};
  // In overlapped mode, exchanges cost only the time by which they outlast everything else.
  const Loss starved = {
      time.round_s() - time.busy_s(),
      "exchanges, which take longer than the inner steps between them, so that pushes are skipped",
      ExchangeRemedy(run, time.push_s > time.pull_s ? SmallerPush(run) : SmallerPull(run))};
  const std::vector<Loss> blocking = {
      {time.push_s, "the upload of contributions", ExchangeRemedy(run, SmallerPush(run))},
      {time.pull_s, "the download of versions", ExchangeRemedy(run, SmallerPull(run))},
      {time.merge_s, "merge and commit on the coordinator", "more inner.steps help"},
      evaluation,
      own};
  const std::vector<Loss> losses = time.overlapped ? std::vector<Loss>{starved, evaluation, own} : blocking;
  const Loss most = *std::ranges::max_element(losses, {}, &Loss::seconds);
  return absl::StrFormat(
      "workers compute only %.0f %% of their time. Most of the rest, %s a round, is %s: %s",
      100 * time.utilisation(), HumanDuration(Seconds(most.seconds)), most.what, most.remedy);
}

/// Settings that count contributions, of which an island makes one: the checks of a configuration take
/// run.workers for their number.
void IslandsAsWorkers(const RunOptions& run, uint64_t islands, std::vector<std::string>& warnings) {
  const std::string make = absl::StrCat(Counted(islands, "island"), islands == 1 ? " makes " : " make ");
  if (run.round.mode == RoundMode::kAsync && run.outer.optimizer == OuterOptimizerKind::kDelayedNesterov &&
      run.outer.delay != islands) {
    warnings.push_back(absl::StrFormat(
        "each contribution moves the parameters by 1 / %d of its step (outer.delay), but an island makes one "
        "contribution: set outer.delay: %d, or the run learns %s than it should",
        run.outer.delay, islands, run.outer.delay > islands ? "more slowly" : "in larger steps"));
  }
  if (run.round.minimum > islands) {
    warnings.push_back(absl::StrFormat(
        "round.minimum is %d, but %sone contribution each: no round ever closes. Set round.minimum: %d",
        run.round.minimum, make, islands));
  }
  const bool robust = run.merge.method != MergeMethod::kMean && run.merge.method != MergeMethod::kRda;
  if (robust && islands < kFewestForRobust) {
    warnings.push_back(
        absl::StrFormat("merge.method protects against a wrong contribution only among %d or more, but %sone "
                        "each: use mean or rda",
                        kFewestForRobust, make));
  }
}

/// Settings of the run and the coordinator that do not fit workers of several ranks.
void RankWarnings(const RunOptions& run, const RunPlan& plan, std::vector<std::string>& warnings) {
  const uint64_t workers = plan.assumptions.workers;
  const uint64_t ranks = plan.assumptions.ranks;
  if (ranks == 1) return;
  if (plan.rounds != plan.run_rounds) {
    warnings.push_back(absl::StrFormat(
        "run.workers is %d, but there are %d ranks (%s of %d): the run ends after %s, not after run.rounds, "
        "which is %d. Set run.workers: %d and round.start_workers: %d",
        run.workers, workers * ranks, Counted(workers, "island"), ranks, Counted(plan.rounds, "round"),
        run.rounds, workers * ranks, workers));
  }
  if (run.round.start_workers > workers && run.round.mode != RoundMode::kAsync) {
    warnings.push_back(absl::StrFormat(
        "the first round waits for %d workers (round.start_workers), but an island is one worker: with %s it "
        "waits until round.deadline_s, %s. Set round.start_workers: %d",
        run.round.start_workers, Counted(workers, "island"), HumanDuration(run.round.deadline), workers));
  }
  IslandsAsWorkers(run, workers, warnings);
  if (ranks > kDefaultMaxRanks) {
    warnings.push_back(
        absl::StrFormat("a coordinator takes at most %d ranks in one worker by default: start it with "
                        "atoll-coordinator --max-ranks %d",
                        kDefaultMaxRanks, ranks));
  }
}

}  // namespace

RunOptions ReadersOf(const RunOptions& run, const RunPlan& plan) {
  RunOptions read = run;
  read.planned_tokens = plan.total_tokens;
  read.workers = plan.assumptions.workers;
  return read;
}

std::vector<std::string> PlanWarnings(const RunOptions& run, const RunPlan& plan) {
  std::vector<std::string> warnings = ConfigAdvice(run);
  RankWarnings(run, plan, warnings);
  const uint64_t in_flight = plan.push_bytes * plan.assumptions.workers;
  if (in_flight > run.contribution_budget_bytes) {
    warnings.push_back(
        absl::StrFormat("if all workers push at once, %s are in flight, but limits.contribution_budget_mib "
                        "allows %s: some pushes must wait and retry",
                        HumanBytes(in_flight), HumanBytes(run.contribution_budget_bytes)));
  }
  if (run.evaluation_every > 0 && run.evaluated_by == EvaluatedBy::kEvaluator) {
    warnings.push_back(
        "evaluation.by is 'evaluator': no version is evaluated until a worker with --role evaluator joins");
  }
  if (run.privacy.enabled() && !run.privacy.noisy()) {
    warnings.push_back("privacy.clip_norm without privacy.noise_multiplier clips but gives no privacy");
  }
  if (plan.privacy && plan.privacy->epsilon > 10) {
    warnings.push_back(
        absl::StrFormat("an epsilon of %.3g against readers of pushes gives almost no privacy: use fewer "
                        "rounds or a larger privacy.noise_multiplier",
                        plan.privacy->epsilon));
  }
  const double deadline = ToSeconds(run.round.deadline);
  if (plan.time.round_s() > deadline) {
    warnings.push_back(
        absl::StrFormat("a round takes about %s, but round.deadline_s is %s: it closes without workers",
                        HumanDuration(Seconds(plan.time.round_s())), HumanDuration(run.round.deadline)));
  }
  if (!plan.assumptions.texts.empty()) {
    if (std::string passes = PassesWarning(ReadersOf(run, plan), plan.assumptions.texts); !passes.empty())
      warnings.push_back(std::move(passes));
  }
  if (const std::optional<std::string> lost = LostTime(run, plan)) warnings.push_back(*lost);
  return warnings;
}

}  // namespace atl
