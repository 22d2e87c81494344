#include "server/start_config.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/partition.h"

namespace atoll {
namespace {

constexpr char kPartitions[] = "data.partitions";

absl::StatusOr<StartConfig> With(const StartConfig& config, const ConfigCodec& codec,
                                 const std::vector<ConfigSetting>& settings) {
  if (settings.empty()) return config;
  StartConfig changed{.bytes = {}, .run = {}, .staleness_open = config.staleness_open};
  ATOLL_ASSIGN_OR_RETURN(changed.bytes, codec.Apply(config.bytes, settings));
  ATOLL_ASSIGN_OR_RETURN(changed.run, codec.Parse(changed.bytes));
  return changed;
}

/// Whether the file leaves the number of partitions to the run: it is 0 there.
absl::StatusOr<bool> LeavesPartitions(const StartConfig& file, const ConfigCodec& codec) {
  if (file.run.data.mode != DataMode::kShared) return false;
  ATOLL_ASSIGN_OR_RETURN(const StartConfig open, With(file, codec, {{kPartitions, "0"}}));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> changes, codec.Diff(file.bytes, open.bytes));
  return changes.empty();
}

/// The same number of steps, but for what is lost where it is no whole number of rounds.
bool SameSteps(uint64_t a, uint64_t b, uint64_t round) { return std::max(a, b) - std::min(a, b) < round; }

/// A budget that is spent already would end the run, and nobody asked for that.
absl::Status CheckBudgetLeft(const RunOptions& recorded, const RunOptions& now, uint64_t committed_tokens) {
  const uint64_t budget = now.total_tokens(), had = recorded.total_tokens();
  const uint64_t round = budget / now.rounds;
  if (committed_tokens < budget || budget >= had || had - budget < round) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "run.rounds: the file's %d rounds are a budget of %d tokens, and the run has trained on %d already (it "
      "has %d rounds, %d tokens). The run would end at once. Nothing was changed. Start with at least %d "
      "rounds, or without --config. To end the run, call `atollctl run stop`",
      now.rounds, budget, committed_tokens, recorded.rounds, had, committed_tokens / round + 1));
}

}  // namespace

absl::StatusOr<StartConfig> ForNewRun(const StartConfig& file, const ConfigCodec& codec) {
  ATOLL_ASSIGN_OR_RETURN(const bool open, LeavesPartitions(file, codec));
  if (!open) return file;
  return With(file, codec, {{kPartitions, absl::StrCat(DefaultPartitions(file.run.workers))}});
}

absl::StatusOr<StartConfig> ForBegunRun(const StartConfig& file, const ConfigCodec& codec,
                                        const RunOptions& recorded,
                                        std::optional<uint64_t> committed_tokens) {
  std::vector<ConfigSetting> settings;
  ATOLL_ASSIGN_OR_RETURN(const bool open, LeavesPartitions(file, codec));
  if (open && file.run.data.partitions != recorded.data.partitions) {
    settings.push_back({kPartitions, absl::StrCat(recorded.data.partitions)});
  }
  const uint32_t limit = recorded.round.staleness_limit;
  if (file.staleness_open && limit != file.run.round.staleness_limit) {
    const std::vector<ConfigSetting> kept = {{"round.staleness_limit", absl::StrCat(limit)}};
    // A merge that the file has changed may not know late contributions.
    if (codec.Apply(file.bytes, kept).ok()) settings.insert(settings.end(), kept.begin(), kept.end());
  }
  const ExtensionOptions& extension = recorded.extension;
  const uint64_t wanted = file.run.total_steps(), have = recorded.total_steps();
  const uint64_t round = std::max(file.run.inner.steps, recorded.inner.steps);
  const uint64_t planned = have - std::min(have, extension.steps_added);
  const bool extended = extension.steps_added > 0 && file.run.extension.steps_added == 0;
  if (extended && (SameSteps(wanted, planned, round) || SameSteps(wanted, have, round))) {
    const double rounds = static_cast<double>(have) / file.run.inner.steps;
    settings.push_back({"run.rounds", absl::StrCat(std::max<int64_t>(1, std::llround(rounds)))});
    settings.push_back({"run.extended_at_step", absl::StrFormat("%.17g", extension.at_step)});
    settings.push_back({"run.extended_from", absl::StrFormat("%.17g", extension.from)});
    settings.push_back({"run.extended_steps", absl::StrCat(extension.steps_added)});
  } else if (committed_tokens && wanted > have && !SameSteps(wanted, have, round)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("run.rounds: the file asks for %d rounds of %d steps, the run has %d of %d. A file "
                        "cannot extend a run: the "
                        "learning rate would jump up. Start with the rounds that the file had, or without "
                        "--config, then call `atollctl "
                        "run extend %d`",
                        file.run.rounds, file.run.inner.steps, recorded.rounds, recorded.inner.steps,
                        std::max<uint64_t>(1, (wanted - have) / recorded.inner.steps)));
  }
  ATOLL_ASSIGN_OR_RETURN(StartConfig start, With(file, codec, settings));
  if (committed_tokens) ATOLL_RETURN_IF_ERROR(CheckBudgetLeft(recorded, start.run, *committed_tokens));
  return start;
}

}  // namespace atoll
