#include "server/opening/start_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"
#include "common/status.h"
#include "core/partition.h"
#include "core/schedule.h"

namespace atl {
namespace {

std::string TokenText(uint64_t tokens) { return HumanCount(static_cast<double>(tokens)); }

constexpr char kPartitions[] = "data.partitions";

absl::StatusOr<StartConfig> With(const StartConfig& config, const ConfigCodec& codec,
                                 const std::vector<ConfigSetting>& settings) {
  if (settings.empty()) return config;
  StartConfig changed;
  changed.staleness_open = config.staleness_open;
  changed.notes = config.notes;
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

/// What the file leaves open of a begun run.
absl::StatusOr<std::vector<ConfigSetting>> OpenFields(const StartConfig& file, const ConfigCodec& codec,
                                                      const RunOptions& recorded) {
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
  return settings;
}

void AddExtension(const ExtensionOptions& extension, std::vector<ConfigSetting>& settings) {
  settings.push_back({"run.extended_at_step", absl::StrFormat("%.17g", extension.at_step)});
  settings.push_back({"run.extended_from", absl::StrFormat("%.17g", extension.from)});
  settings.push_back({"run.extended_steps", absl::StrCat(extension.steps_added)});
}

void AddBudget(uint64_t rounds, uint64_t planned_tokens, uint64_t file_rounds,
               std::vector<ConfigSetting>& settings) {
  settings.push_back({"run.rounds", absl::StrCat(rounds)});
  settings.push_back({"run.planned_tokens", absl::StrCat(planned_tokens)});
  settings.push_back({"run.file_rounds", absl::StrCat(file_rounds)});
}

/// run.file_rounds of a run that has so many rounds, `extended` or not.
uint64_t FileRounds(const RunOptions& file, uint64_t rounds, bool extended) {
  return rounds == file.rounds && !extended ? 0 : file.rounds;
}

/// run.rounds of the file of the last start. A start that was recorded before run.file_rounds was there, in
/// an extended run, leaves open which of the two numbers the file had; this is the smaller one.
uint32_t RoundsOfLastFile(const RunOptions& last) {
  if (last.file_rounds > 0) return last.file_rounds;
  if (last.extension.steps_added == 0) return last.rounds;
  const uint64_t steps = last.total_steps() - std::min(last.total_steps(), last.extension.steps_added);
  return static_cast<uint32_t>(std::llround(static_cast<double>(steps) / last.inner.steps));
}

/// Whether the file of the last start may have said so many rounds.
bool SaidAtLastStart(const RunOptions& last, uint32_t rounds) {
  return rounds == RoundsOfLastFile(last) || (last.file_rounds == 0 && rounds == last.rounds);
}

enum class RoundsAsked { kSame, kFewer, kMore };

/// What the file asks for, compared with the file of the last start. Not with the recorded run: its rounds
/// may be those of an extension, and a file that is raised must not shorten it.
RoundsAsked CompareRounds(const RunOptions& file, const RunOptions& recorded, const RunOptions& last) {
  const uint64_t wanted = file.total_tokens(), budget = recorded.total_tokens();
  const uint64_t round = std::max(file.tokens_per_round(), recorded.tokens_per_round());
  const auto is_about = [&](uint64_t tokens) {
    return std::max(wanted, tokens) - std::min(wanted, tokens) < round;
  };
  if (SaidAtLastStart(last, file.rounds) || is_about(budget)) return RoundsAsked::kSame;
  if (wanted > budget) return RoundsAsked::kMore;
  // A file that `atollctl config show` has written knows the extension.
  if (file.extension.steps_added > 0) return RoundsAsked::kFewer;
  const uint32_t said = RoundsOfLastFile(last);
  if (file.tokens_per_round() == last.tokens_per_round()) {
    return file.rounds < said ? RoundsAsked::kFewer : RoundsAsked::kMore;
  }
  const uint64_t total = last.total_tokens();
  const uint64_t added = std::min(total, last.extension.steps_added * last.tokens_per_position());
  const uint64_t planned = said == last.rounds ? total : total - added;
  if (is_about(planned)) return RoundsAsked::kSame;
  return wanted < planned ? RoundsAsked::kFewer : RoundsAsked::kMore;
}

/// In steps of `to`, which need not have as many tokens as those of `from`.
ExtensionOptions Converted(const RunOptions& from, const RunOptions& to) {
  const double ratio =
      static_cast<double>(from.tokens_per_position()) / static_cast<double>(to.tokens_per_position());
  const double added = static_cast<double>(from.extension.steps_added) * ratio;
  return {.at_step = from.extension.at_step * ratio,
          .from = from.extension.from,
          .steps_added = static_cast<uint64_t>(std::llround(added))};
}

absl::Status MoreRounds(const RunOptions& file, const RunOptions& recorded, const RunOptions& last_start) {
  const uint64_t budget = recorded.total_tokens(), wanted = file.total_tokens();
  const uint32_t said = RoundsOfLastFile(last_start);
  if (wanted > budget) {
    const uint64_t more = file.rounds_for(wanted - budget);
    return absl::FailedPreconditionError(absl::StrFormat(
        "run.rounds: the file asks for %s, %s tokens, and the run is planned for %s tokens. A file cannot "
        "extend a run. Nothing was changed. Put run.rounds back to %d, or start without --config, then call "
        "`atollctl run extend %d`",
        Counted(file.rounds, "round"), TokenText(wanted), TokenText(budget), said, more));
  }
  const uint64_t rounds = file.rounds_for(budget);
  return absl::FailedPreconditionError(absl::StrFormat(
      "run.rounds: the file asks for %s, and at the last start it asked for %d. The run has %d%s, so the "
      "file "
      "would not extend it but end it earlier. Nothing was changed. Put run.rounds back to %d, or start "
      "without --config; for more than %d rounds, then call `atollctl run extend`. To end the run at %d "
      "rounds, start with run.rounds: %d, which is what it has, and then with %d",
      Counted(file.rounds, "round"), said, rounds,
      recorded.extension.steps_added > 0 ? ", with its extension" : "", said, rounds, file.rounds, rounds,
      file.rounds));
}

/// A budget that is spent already would end the run, and nobody asked for that.
absl::Status CheckBudgetLeft(const RunOptions& file, const RunOptions& recorded, uint64_t committed_tokens) {
  if (committed_tokens < file.total_tokens()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "run.rounds: the file's %d rounds are a budget of %d tokens, and the run has trained on %d already (it "
      "has %d rounds, %d tokens). The run would end at once. Nothing was changed. Start with at least %d "
      "rounds, or without --config. To end the run, call `atollctl run stop`",
      file.rounds, file.total_tokens(), committed_tokens, recorded.rounds, recorded.total_tokens(),
      committed_tokens / file.tokens_per_round() + 1));
}

absl::Status CheckRoundFits(const RunOptions& file, uint64_t budget) {
  if (file.tokens_per_round() <= budget) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "inner.steps: one round of the file, %d steps of %d workers, has %s tokens, and the run is planned for "
      "%s tokens in all. Nothing was changed. Make the round smaller: at most %d steps with these workers "
      "and "
      "this batch",
      file.inner.steps, file.workers, TokenText(file.tokens_per_round()), TokenText(budget),
      budget / file.tokens_per_position()));
}

/// The learning rate as a fraction of the peak, and where.
struct RatePoint {
  double position = 0;
  double rate = 0;
  double fraction = 0;
};

RatePoint RateAtTokens(const RunOptions& run, double tokens) {
  const double position = SchedulePosition(run, tokens);
  const double rate = LearningRateAt(run, position);
  return {.position = position, .rate = rate, .fraction = rate / run.inner.learning_rate};
}

/// The second decay that has this fraction of the peak at `tokens`. It begins where the open round did: if
/// that round counts fewer tokens than planned, the next one begins before `tokens`, and is not to go by the
/// schedule that is replaced.
ExtensionOptions DecayThrough(double fraction, double tokens, double committed, const RunOptions& run) {
  const double at = std::max(SchedulePosition(run, committed), 1.0);
  const double here = std::max(SchedulePosition(run, tokens), at);
  const double end = SchedulePosition(run, static_cast<double>(run.total_tokens()));
  const double floor = run.inner.min_learning_rate_ratio;
  // What the cosine keeps of the way down to the floor.
  const double left = 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, (here - at) / (end - at))));
  const bool near_the_end = !(left > 0.5);
  const double from = near_the_end ? fraction : floor + (fraction - floor) / left;
  return {.at_step = near_the_end ? here : at,
          .from = std::clamp(from, 0.0, 1.0),
          .steps_added = run.extension.steps_added};
}

/// Where the schedule of the file would move the learning rate although the file says nothing of it, a second
/// decay from the rate that is reached takes its place. Before the decay there is only the warmup to follow.
absl::StatusOr<StartConfig> WithSteadyRate(const StartConfig& start, const ConfigCodec& codec,
                                           const RunOptions& recorded, uint64_t committed_tokens) {
  const auto end = static_cast<double>(recorded.total_tokens());
  const auto committed = static_cast<double>(committed_tokens);
  // The open round keeps the old schedule to its end.
  const double tokens = committed >= end
                            ? committed
                            : std::min(end, committed + static_cast<double>(recorded.tokens_per_round()));
  const RatePoint before = RateAtTokens(recorded, tokens), after = RateAtTokens(start.run, tokens);
  const bool other_steps = start.run.tokens_per_position() != recorded.tokens_per_position();
  const bool same_schedule =
      start.run.inner.warmup_steps == recorded.inner.warmup_steps &&
      start.run.inner.min_learning_rate_ratio == recorded.inner.min_learning_rate_ratio;
  const bool rises = same_schedule && after.fraction > before.fraction * (1 + 1e-9);
  const bool warms_up = recorded.extension.at_step <= 0 && before.position <= recorded.inner.warmup_steps;
  StartConfig steady = start;
  if (!warms_up && (other_steps || rises)) {
    std::vector<ConfigSetting> settings;
    AddExtension(DecayThrough(before.fraction, tokens, committed, start.run), settings);
    ATOLL_ASSIGN_OR_RETURN(steady, With(start, codec, settings));
  }
  const RatePoint now = RateAtTokens(steady.run, tokens);
  if (std::abs(now.rate - before.rate) > 1e-6 * before.rate) {
    steady.notes.push_back(
        absl::StrFormat("the learning rate from the next round on: %.6g -> %.6g", before.rate, now.rate));
  }
  return steady;
}

/// Of a run that has trained.
absl::StatusOr<StartConfig> WithBudget(const StartConfig& file, const ConfigCodec& codec, const BegunRun& run,
                                       uint64_t committed_tokens) {
  const RunOptions& recorded = run.recorded;
  const uint64_t budget = recorded.total_tokens();
  const RoundsAsked asked = CompareRounds(file.run, recorded, run.last_start);
  const bool finished = committed_tokens >= budget;
  if (asked == RoundsAsked::kMore) return MoreRounds(file.run, recorded, run.last_start);
  if (asked == RoundsAsked::kFewer && !finished) {
    ATOLL_RETURN_IF_ERROR(CheckBudgetLeft(file.run, recorded, committed_tokens));
    std::vector<ConfigSetting> no_extension;
    AddExtension({}, no_extension);
    ATOLL_ASSIGN_OR_RETURN(StartConfig shorter, With(file, codec, no_extension));
    shorter.notes.push_back(
        absl::StrFormat("run.rounds of the file is lower than at the last start: the run ends earlier, at %s "
                        "instead of %d%s",
                        Counted(file.run.rounds, "round"), file.run.rounds_for(budget),
                        recorded.extension.steps_added > 0 ? ", and its extension is taken back" : ""));
    return shorter;
  }
  if (!finished) ATOLL_RETURN_IF_ERROR(CheckRoundFits(file.run, budget));
  const uint64_t rounds = file.run.rounds_for(budget);
  const bool whole = rounds * file.run.tokens_per_round() == budget;
  std::vector<ConfigSetting> settings;
  AddBudget(rounds, whole ? 0 : budget, FileRounds(file.run, rounds, recorded.extension.steps_added > 0),
            settings);
  AddExtension(Converted(recorded, file.run), settings);
  ATOLL_ASSIGN_OR_RETURN(StartConfig kept, With(file, codec, settings));
  if (file.run.tokens_per_round() != recorded.tokens_per_round() || asked == RoundsAsked::kFewer) {
    kept.notes.push_back(absl::StrFormat(
        "a file does not change the token budget of a begun run, which stays %s tokens%s: run.rounds is %d "
        "(before: %d rounds of %s tokens; now a round has %s). `atollctl run extend` adds rounds",
        TokenText(budget), finished ? ", and the run stays finished" : "", rounds, recorded.rounds,
        TokenText(recorded.tokens_per_round()), TokenText(file.run.tokens_per_round())));
  }
  return kept;
}

}  // namespace

absl::StatusOr<StartConfig> ForNewRun(const StartConfig& file, const ConfigCodec& codec) {
  ATOLL_ASSIGN_OR_RETURN(const bool open, LeavesPartitions(file, codec));
  if (!open) return file;
  return With(file, codec, {{kPartitions, absl::StrCat(DefaultPartitions(file.run.workers))}});
}

absl::StatusOr<StartConfig> ForBegunRun(const StartConfig& file, const ConfigCodec& codec,
                                        const BegunRun& run) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<ConfigSetting> settings, OpenFields(file, codec, run.recorded));
  if (run.committed_tokens) {
    ATOLL_ASSIGN_OR_RETURN(const StartConfig filled, With(file, codec, settings));
    ATOLL_ASSIGN_OR_RETURN(const StartConfig start, WithBudget(filled, codec, run, *run.committed_tokens));
    return WithSteadyRate(start, codec, run.recorded, *run.committed_tokens);
  }
  // Nothing was trained that a new budget could harm; an extension stays.
  const RunOptions& recorded = run.recorded;
  const bool extended = recorded.extension.steps_added > 0;
  const bool kept = SaidAtLastStart(run.last_start, file.run.rounds);
  if (extended && kept) {
    const uint64_t rounds = file.run.rounds_for(recorded.total_tokens());
    AddBudget(rounds, 0, FileRounds(file.run, rounds, extended), settings);
    AddExtension(Converted(recorded, file.run), settings);
  }
  ATOLL_ASSIGN_OR_RETURN(StartConfig start, With(file, codec, settings));
  if (extended && !kept) {
    start.notes.push_back(absl::StrFormat(
        "run.rounds of the file is another one than at the last start, and nothing was trained yet: the run "
        "has %s instead of %d, and its extension is taken back",
        Counted(file.run.rounds, "round"), recorded.rounds));
  }
  return start;
}

absl::StatusOr<std::vector<ConfigChange>> TakenBack(const ConfigCodec& codec, const std::string& last_bytes,
                                                    const std::string& newest_bytes,
                                                    const std::string& start_bytes) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> set, codec.Diff(last_bytes, newest_bytes));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> by_file, codec.Diff(last_bytes, start_bytes));
  std::vector<ConfigChange> taken_back;
  for (const ConfigChange& setting : set) {
    const bool in_file = std::ranges::find(by_file, setting.path, &ConfigChange::path) != by_file.end();
    if (in_file || absl::StartsWith(setting.path, "run.")) continue;
    taken_back.push_back({.path = setting.path, .before = setting.after, .after = setting.before});
  }
  return taken_back;
}

std::string TakenBackNote(const std::vector<ConfigChange>& settings) {
  std::vector<std::string> changes, arguments;
  for (const ConfigChange& setting : settings) {
    changes.push_back(ConfigChangeText(setting));
    arguments.push_back(setting.path + "=" + setting.before);
  }
  return absl::StrFormat(
      "the file changed, so it takes back what `atollctl config set` changed since the last start: %s. To "
      "restore these values, call `atollctl config set %s`, and write them into the file, so that its next "
      "change keeps them",
      absl::StrJoin(changes, ", "), absl::StrJoin(arguments, " "));
}

absl::StatusOr<bool> IsFileOfLastStart(const StartConfig& file, const ConfigCodec& codec,
                                       const std::string& last_bytes) {
  if (file.bytes == last_bytes) return true;
  ATOLL_ASSIGN_OR_RETURN(const RunOptions last, codec.Parse(last_bytes));
  if (!SaidAtLastStart(last, file.run.rounds)) return false;
  ATOLL_ASSIGN_OR_RETURN(std::vector<ConfigSetting> settings, OpenFields(file, codec, last));
  AddBudget(last.rounds, last.planned_tokens, last.file_rounds, settings);
  AddExtension(last.extension, settings);
  const auto then = codec.Apply(file.bytes, settings);
  if (!then.ok()) return false;  // the values of that file do not fit to this one
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigChange> changes, codec.Diff(last_bytes, *then));
  return changes.empty();
}

}  // namespace atl
