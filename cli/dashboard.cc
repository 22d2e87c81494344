#include "cli/dashboard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/loss_text.h"
#include "cli/plot.h"
#include "cli/task_scores.h"
#include "cli/text.h"
#include "cli/worker_view.h"
#include "common/clock.h"
#include "common/human.h"

namespace atl {
namespace {

// The coordinator's prefix for a fragment. Omitted if the run has only one fragment.
constexpr char kOnlyFragment[] = "fragment 0: ";
// Width of the full table of workers, in columns.
constexpr int kWideTable = 96;

std::string Paint(const std::string& text, const char* sgr, const DashboardStyle& style) {
  return style.colour ? absl::StrFormat("\x1b[%sm%s\x1b[0m", sgr, text) : text;
}

const char* StateColour(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_TRAINING:
      return "32";
    case v1::RUN_STATE_FINISHED:
    case v1::RUN_STATE_STOPPED:
      return "36";
    case v1::RUN_STATE_PAUSED:
      return "35";
    case v1::RUN_STATE_CRITICAL:
      return "31";
    default:
      return "33";
  }
}

std::string Bar(double fraction, int width) {
  const double filled = std::clamp(fraction, 0.0, 1.0) * width;
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i + 0.5 <= filled ? "█" : "░";
  return bar;
}

double Fraction(const v1::GetStatusReply& status) {
  return status.total_tokens() == 0
             ? 0
             : static_cast<double>(status.committed_tokens()) / static_cast<double>(status.total_tokens());
}

uint64_t HeadVersion(const v1::GetStatusReply& status) {
  uint64_t version = 0;
  for (const auto& fragment : status.fragments()) version = std::max(version, fragment.version());
  return version;
}

/// The version with `progress` towards the plan. A finished run shows its tokens without "of", because its
/// last round may exceed the plan.
std::string ProgressText(const v1::GetStatusReply& status, const std::string& progress) {
  std::string text = absl::StrFormat("version %d", HeadVersion(status));
  if (status.state() != v1::RUN_STATE_FINISHED) return text + progress;
  return text + absl::StrFormat(" after %s tokens (%s planned)",
                                HumanCount(static_cast<double>(status.committed_tokens())),
                                HumanCount(static_cast<double>(status.total_tokens())));
}

/// Whether only the workers know the model.
bool WorkersBringTheModel(const v1::GetStatusReply& status) {
  const v1::ModelSection& model = status.config().model();
  return model.has_external() || model.has_torchscript();
}

/// Only the loss of a language model has a perplexity.
std::string LossText(const v1::GetStatusReply& status, double loss) {
  if (WorkersBringTheModel(status)) return LossNumber(loss);
  return absl::StrFormat("%s (perplexity %.2f)", LossNumber(loss), std::exp(loss));
}

std::string ValidationText(const v1::GetStatusReply& status) {
  if (status.evaluations().empty()) return "not evaluated yet";
  const auto& last = status.evaluations(status.evaluations_size() - 1);
  std::string text = absl::StrFormat("%s at version %d", LossText(status, last.loss()), last.version());
  if (status.has_first_evaluation() && status.first_evaluation().version() != last.version()) {
    text += absl::StrFormat(", from %s", LossNumber(status.first_evaluation().loss()));
  }
  return text;
}

std::string ShortValidationText(const v1::GetStatusReply& status) {
  if (status.evaluations().empty()) return "not evaluated yet";
  const auto& last = status.evaluations(status.evaluations_size() - 1);
  return absl::StrFormat("validation loss %s at version %d", LossNumber(last.loss()), last.version());
}

std::string TrainText(const v1::GetStatusReply& status) {
  if (status.rounds().empty()) return "not known yet";
  const auto& last = status.rounds(status.rounds_size() - 1);
  if (last.train_loss() == 0) return "not reported";
  return absl::StrFormat("%s at version %d", LossNumber(last.train_loss()), last.version());
}

/// The speed is unknown until this coordinator has timed one whole round.
std::string SpeedText(const v1::GetStatusReply& status) {
  const bool trains = status.state() == v1::RUN_STATE_TRAINING || status.state() == v1::RUN_STATE_DEGRADED;
  if (trains && status.live_trainers() > 0 && status.tokens_per_second() <= 0 &&
      status.storage_error().empty()) {
    return "speed not known yet";
  }
  return HumanRate(status.tokens_per_second(), "tok");
}

std::string TimeLeft(const v1::GetStatusReply& status) {
  if (status.state() == v1::RUN_STATE_FINISHED) return "done";
  if (status.state() == v1::RUN_STATE_STOPPED) return "stopped";
  if (status.state() == v1::RUN_STATE_PAUSED) return "paused";
  if (status.eta_seconds() <= 0) {
    return status.live_trainers() > 0 ? "time left not known yet" : "no worker trains";
  }
  return "~" + HumanDuration(Seconds(status.eta_seconds())) + " left";
}

std::string TrafficText(const v1::GetStatusReply& status) {
  const v1::Traffic& traffic = status.traffic();
  const std::string moved =
      absl::StrFormat("%s up, %s down", HumanBytes(traffic.push_bytes()), HumanBytes(traffic.pull_bytes()));
  if (traffic.data_parallel_bytes() == 0) return moved;
  return absl::StrFormat("%s: %s fewer bytes than data-parallel (%s)", moved, TrafficRatio(traffic),
                         HumanBytes(traffic.data_parallel_bytes()));
}

std::string PrivacyText(const v1::PrivacyStatus& privacy) {
  std::string text = absl::StrFormat("clip norm %.4g, ", privacy.clip_norm());
  if (!privacy.has_epsilon()) return text + "no noise: no epsilon";
  text += absl::StrFormat("noise multiplier %.4g: epsilon %.4g for readers of pushes",
                          privacy.noise_multiplier(), privacy.epsilon());
  if (privacy.has_published_epsilon()) {
    text += absl::StrFormat(", %.4g for readers of versions", privacy.published_epsilon());
  }
  return text + absl::StrFormat(", at delta %.2g", privacy.delta());
}

/// " waiting for an operator": one wait.
std::string WaitText(const v1::Waiting& wait) {
  const bool says_so = absl::StrContains(wait.what(), "wait") || absl::StartsWith(wait.what(), "fragment ");
  return (says_so ? " " : " waiting for ") + Printable(wait.what());
}

/// One wait with the awaited workers that its text does not name. They stand before the text's explanation.
std::string NamedWaitText(const v1::Waiting& wait, bool one_fragment) {
  const std::string what = Printable(wait.what());
  std::string text = WaitText(wait);
  if (one_fragment && absl::StartsWith(what, kOnlyFragment))
    text = " " + what.substr(sizeof kOnlyFragment - 1);
  std::vector<std::string> unnamed;
  for (const std::string& name : wait.from()) {
    if (!absl::StrContains(what, Printable(name))) unnamed.push_back(Printable(name));
  }
  if (unnamed.empty()) return text;
  const std::string names = absl::StrJoin(unnamed, ", ");
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return absl::StrCat(text, ": ", names);
  return text.insert(colon, absl::StrCat(" (", names, ")"));
}

std::string WaitLine(const v1::Waiting& wait, bool one_fragment) {
  std::string line = NamedWaitText(wait, one_fragment);
  if (wait.since_s() >= 1) line += absl::StrFormat(", for %s", HumanDuration(Seconds(wait.since_s())));
  if (wait.ends_in_s() > 0) {
    line += absl::StrFormat(", at most %s more", HumanDuration(Seconds(wait.ends_in_s())));
  }
  return line;
}

/// Rejected attempts that no entry of the list counts; 0 while the list is too short to have dropped any.
uint64_t UnlistedJoins(const v1::GetStatusReply& status) {
  constexpr int kMayBeFull = 64;  // the coordinator's bound for one address; 128 for all
  if (status.refused_joins_size() < kMayBeFull) return 0;
  uint64_t listed = 0;
  for (const auto& rejected : status.refused_joins()) listed += rejected.attempts();
  return status.joins_refused() - std::min(status.joins_refused(), listed);
}

/// Workers that are rejected at Join: name, reason, since when.
std::vector<std::string> RejectedLines(const v1::GetStatusReply& status) {
  constexpr size_t kShown = 4;
  std::vector<std::string> lines;
  for (const auto& rejected : status.refused_joins()) {
    if (lines.size() == kShown) {
      const size_t more = static_cast<size_t>(status.refused_joins_size()) - kShown;
      lines.push_back(
          absl::StrFormat(" and %d more %s rejected", more, more == 1 ? "worker is" : "workers are"));
      break;
    }
    std::string line = " rejected: worker ";
    line += rejected.worker().empty() ? "without a valid name" : "'" + Printable(rejected.worker()) + "'";
    if (!rejected.address().empty()) line += " (" + Printable(rejected.address()) + ")";
    const std::string since = HumanDuration(Seconds(rejected.since_s()));
    line += rejected.attempts() == 1 ? absl::StrFormat(", once, %s ago: ", since)
                                     : absl::StrFormat(", %d times within %s: ", rejected.attempts(), since);
    lines.push_back(line + Printable(rejected.message()));
  }
  if (const uint64_t unlisted = UnlistedJoins(status); unlisted > 0) {
    lines.push_back(absl::StrFormat(
        " and %s more %s rejected since the coordinator's start; the list of names is bounded",
        HumanCount(static_cast<double>(unlisted)), unlisted == 1 ? "join was" : "joins were"));
  }
  return lines;
}

/// The waits that the coordinator reports; of an older coordinator, the waits of its fragments.
std::vector<std::string> WaitLines(const v1::GetStatusReply& status, const DashboardStyle& style) {
  std::vector<std::string> lines;
  if (!status.security_warning().empty()) {
    lines.push_back(Paint(" " + Printable(status.security_warning()), "31", style));
  }
  const bool one_fragment = status.fragments_size() <= 1;
  for (const auto& wait : status.waiting()) lines.push_back(Paint(WaitLine(wait, one_fragment), "33", style));
  for (const auto& fragment : status.fragments()) {
    if (fragment.waiting_for().empty() || !status.waiting().empty()) continue;
    std::string line = one_fragment ? " " : absl::StrFormat(" fragment %d: ", fragment.id());
    line += Printable(fragment.waiting_for());
    if (fragment.wait_ends_in_s() > 0) {
      line += absl::StrFormat(", at most %s more", HumanDuration(Seconds(fragment.wait_ends_in_s())));
    }
    lines.push_back(Paint(line, "33", style));
  }
  for (const std::string& line : RejectedLines(status)) lines.push_back(Paint(line, "31", style));
  if (!status.storage_error().empty()) {
    lines.push_back(Paint(" storage: " + Printable(status.storage_error()), "31", style));
  }
  return lines;
}

/// Whether the lines below the state repeat its reason.
bool SaidBelow(const v1::GetStatusReply& status) {
  const std::string& reason = status.state_reason();
  const auto says = [&](const v1::Waiting& wait) { return absl::StrContains(wait.what(), reason); };
  return std::ranges::any_of(status.waiting(), says) ||
         (status.fragments_size() > 0 && status.fragments(0).waiting_for() == reason);
}

std::vector<std::string> CurveLines(const v1::GetStatusReply& status, const DashboardStyle& style,
                                    int height) {
  Curve train{"train loss", "34", {}}, validation{"validation loss", "35", {}};
  const double tokens_per_step = static_cast<double>(status.total_tokens()) /
                                 static_cast<double>(std::max<uint64_t>(status.total_steps(), 1));
  // Uses tokens, like the schedule, because the steps per round may have changed.
  std::map<uint64_t, double> step_of = {{0, 0.0}};
  std::optional<uint64_t> before;
  for (const auto& round : status.rounds()) {
    if (round.fragment() != 0 || tokens_per_step <= 0) continue;
    const double step = static_cast<double>(round.committed_tokens()) / tokens_per_step;
    // A restore abandons the rounds after the checkpoint. Draw only rounds that led to the head: a
    // coordinator before 0.2.0 also sends the abandoned ones.
    const bool skipped = before && round.version() > *before + 1;
    before = round.version();
    const auto abandoned = [step](const auto& known) { return known.second > step; };
    if (std::erase_if(step_of, abandoned) > 0 || skipped) {
      train.name = absl::StrFormat("train loss, restored at step %.0f", step);
      std::erase_if(train.points, [step](const auto& point) { return point.first > step; });
    }
    step_of[round.version()] = step;
    if (round.train_loss() != 0) train.points.emplace_back(step, round.train_loss());
  }
  for (const auto& evaluation : status.evaluations()) {
    const auto it = step_of.find(evaluation.version());
    if (it != step_of.end()) validation.points.emplace_back(it->second, evaluation.loss());
  }
  return PlotCurves({train, validation}, style.width, height, style.colour);
}

/// "computing 97 %": share of the workers' time; empty if unknown.
std::string UtilisationText(const v1::GetStatusReply& status) {
  if (status.compute_utilisation() <= 0) return "";
  return absl::StrFormat("  computing %.0f %%", 100 * status.compute_utilisation());
}

std::string LossCell(double loss) { return loss != 0 ? LossNumber(loss, 7) : "      -"; }

/// The run's age, including downtime; the uptime of a coordinator that does not report the run's age.
std::string AgeText(const v1::GetStatusReply& status) {
  if (status.run_seconds() <= 0) return "coordinator up for " + HumanDuration(Seconds(status.uptime_s()));
  const std::string age = HumanDuration(Seconds(status.run_seconds()));
  const bool over = status.state() == v1::RUN_STATE_FINISHED || status.state() == v1::RUN_STATE_STOPPED;
  return over ? "ended " + age + " after its creation" : "created " + age + " ago";
}

/// Of an external model.
std::string ModelText(const v1::GetStatusReply& status) {
  if (status.parameters() == 0) return "not known until the first worker joins";
  return absl::StrFormat("%s, %s parameters, from the workers", Counted(status.tensors(), "tensor"),
                         HumanCount(static_cast<double>(status.parameters())));
}

std::string Fit(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 1) + "~";
  return text + std::string(width - text.size(), ' ');
}

std::string MfuCell(const v1::Progress& progress) {
  const std::optional<double> share = ModelFlopsUtilization(progress);
  return share ? absl::StrFormat("%.0f%%", *share * 100) : "-";
}

}  // namespace

std::string TrafficRatio(const v1::Traffic& traffic) {
  const uint64_t moved = traffic.push_bytes() + traffic.pull_bytes();
  if (moved == 0 || traffic.data_parallel_bytes() == 0) return "-";
  const double ratio = static_cast<double>(traffic.data_parallel_bytes()) / static_cast<double>(moved);
  return ratio < 10 ? absl::StrFormat("%.1fx", ratio) : absl::StrFormat("%.0fx", ratio);
}

std::vector<std::string> RenderStatus(const v1::GetStatusReply& status, const DashboardStyle& style) {
  std::vector<std::string> lines;
  std::string left =
      absl::StrFormat(" %s  %s", Paint("atoll", "1", style), Paint(Printable(status.run_name()), "1", style));
  const std::string id = absl::StrFormat("  run %s", status.run_id());
  const std::string right = absl::StrFormat("%s, %s", AgeText(status), TimeLeft(status));
  const auto gap = [&] { return style.width - static_cast<int>(Columns(left) + Columns(right)) - 1; };
  if (gap() >= static_cast<int>(id.size()) + 2) left += id;
  lines.push_back(left + std::string(static_cast<size_t>(std::max(gap(), 2)), ' ') + right);
  std::string state = " " + Paint(StateName(status.state()), StateColour(status.state()), style);
  if (!status.state_reason().empty() && !SaidBelow(status)) state += ": " + Printable(status.state_reason());
  lines.push_back(state);
  const double fraction = Fraction(status);
  const std::string progress =
      absl::StrFormat("  %s %3.0f %% of %s tokens  inner step %.0f of %d  lr %.2e", Bar(fraction, 20),
                      fraction * 100, HumanCount(static_cast<double>(status.total_tokens())),
                      status.position_steps(), status.total_steps(), status.learning_rate());
  lines.push_back(absl::StrFormat(" %s  %s%s", ProgressText(status, progress), SpeedText(status),
                                  UtilisationText(status)));
  lines.push_back(" validation loss " + ValidationText(status) + "   train loss " + TrainText(status));
  if (const std::string scores = TaskScoresLine(status); !scores.empty()) lines.push_back(" tasks " + scores);
  lines.push_back(" moved " + TrafficText(status));
  if (WorkersBringTheModel(status)) lines.push_back(" model " + ModelText(status));
  if (status.has_privacy()) lines.push_back(" privacy " + PrivacyText(status.privacy()));
  for (std::string& line : WaitLines(status, style)) lines.push_back(std::move(line));
  return lines;
}

std::string IdentityLine(const v1::GetStatusReply& status, const std::string& address) {
  return absl::StrFormat(" run %s, epoch %016x, coordinator %s", Printable(status.run_id()), status.epoch(),
                         address);
}

std::vector<std::string> RenderWorkers(const v1::ListWorkersReply& workers, const DashboardStyle& style) {
  std::vector<std::string> lines;
  const bool narrow = style.width < kWideTable;
  const size_t name_width = narrow ? 12 : 19;
  const std::string title =
      narrow ? "   tok/s   up        lease" : "   tok/s   mfu   up        down      lease";
  lines.push_back(
      Paint(" " + Fit("worker", name_width) + " state    phase       step        loss" + title, "2", style));
  for (const auto& worker : workers.workers()) {
    if (worker.role() == v1::ROLE_OBSERVER && worker.state() != "active") continue;  // a past reader
    const v1::Progress& progress = worker.progress();
    const bool member = worker.state() == "active" || worker.state() == "draining";
    // No heartbeat yet; or the last one of a departed worker says what it no longer does.
    const bool silent = progress.phase() == v1::WORKER_PHASE_UNSPECIFIED || !member;
    lines.push_back(absl::StrFormat(
        " %s %s %s %s %s %8s   %s%s %s%s", Fit(Printable(worker.name()), name_width), Fit(worker.state(), 8),
        Fit(!silent                      ? PhaseName(progress.phase())
            : worker.state() == "active" ? "preparing"
                                         : "-",
            11),
        Fit(silent ? "-" : absl::StrFormat("%d/%d", progress.step(), progress.steps()), 8),
        LossCell(progress.loss()), silent ? "-" : HumanCount(progress.tokens_per_second()),
        narrow ? "" : Fit(silent ? "-" : MfuCell(progress), 6), Fit(HumanBytes(worker.push_bytes()), 9),
        narrow ? "" : Fit(HumanBytes(worker.pull_bytes()), 9) + " ",
        worker.state() == "active"
            ? HumanDuration(Seconds(std::max(0.0, std::floor(worker.lease_remaining_s()))))
            : "-"));
    if (worker.capabilities().ranks() > 1) {
      lines.back() += absl::StrFormat("  %d ranks", worker.capabilities().ranks());
    }
    if (worker.banned()) lines.back() += Paint("  banned", "31", style);
    if (const v1::OffenceStatus& offences = worker.offences(); offences.recent() > 0) {
      lines.back() += Paint(absl::StrFormat("  suspect in %d of %d rounds (%s)", offences.recent(),
                                            offences.rounds(), Printable(offences.kinds())),
                            "31", style);
    }
    const std::string command = CommandName(worker.pending_command());
    if (!command.empty()) lines.back() += Paint("  told to " + command, "33", style);
    if (!progress.waiting_for().empty() && worker.state() == "active") {
      lines.back() += Paint("  " + ActivityText(progress), "2", style);
    }
  }
  return lines;
}

namespace {

std::vector<std::string> Wrapped(const std::vector<std::string>& lines, const DashboardStyle& style) {
  std::vector<std::string> parts;
  for (const std::string& line : lines) {
    for (std::string& part : WrapToColumns(line, static_cast<size_t>(std::max(style.width - 1, 1)))) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace

std::vector<std::string> RenderDashboard(const v1::GetStatusReply& status,
                                         const v1::ListWorkersReply& workers, const DashboardStyle& style) {
  std::vector<std::string> lines = Wrapped(RenderStatus(status, style), style);
  // Keep the terminal's last line empty: a line feed after it would scroll the first line away.
  const auto height = static_cast<size_t>(std::max(style.height - 1, 1));
  const std::vector<std::string> table = Wrapped(RenderWorkers(workers, style), style);
  const int room = static_cast<int>(height) - static_cast<int>(lines.size() + table.size()) - 2;
  const std::vector<std::string> curve = CurveLines(status, style, std::clamp(room, 0, 16));
  if (!curve.empty()) lines.emplace_back();
  lines.insert(lines.end(), curve.begin(), curve.end());
  if (lines.size() + table.size() < height) lines.emplace_back();
  lines.insert(lines.end(), table.begin(), table.end());
  if (lines.size() > height) {
    const size_t cut = lines.size() - height + 1;
    lines.resize(height - 1);
    lines.push_back(CutToColumns(absl::StrFormat(" ... and %d more lines", cut),
                                 static_cast<size_t>(std::max(style.width - 1, 1))));
  }
  return lines;
}

std::string RenderLine(const v1::GetStatusReply& status) {
  const std::string progress =
      absl::StrFormat(", %s of %s tokens", HumanCount(static_cast<double>(status.committed_tokens())),
                      HumanCount(static_cast<double>(status.total_tokens())));
  std::string line =
      absl::StrFormat("%s: %s, train loss %s, %s, %s, %s, %s", StateName(status.state()),
                      ProgressText(status, progress), TrainText(status), ShortValidationText(status),
                      Counted(status.live_trainers(), "worker"), SpeedText(status), TimeLeft(status));
  for (const auto& fragment : status.fragments()) {
    if (fragment.waiting_for().empty()) continue;
    line += "; ";
    if (status.fragments_size() > 1) line += absl::StrFormat("fragment %d: ", fragment.id());
    line += fragment.waiting_for();
  }
  for (const auto& wait : status.waiting()) {
    const bool of_fragment = absl::StartsWith(wait.what(), "fragment ");
    // Beside the rounds, only waits for workers that an operator can do something about.
    if (status.fragments().empty() || (!of_fragment && !wait.from().empty())) {
      line += ";" + NamedWaitText(wait, /*one_fragment=*/true);
    }
  }
  return Printable(line);
}

std::vector<std::string> RenderSummary(const v1::GetStatusReply& status, const DashboardStyle& style) {
  std::vector<std::string> lines;
  lines.push_back(Paint(absl::StrFormat(" run %s: %s at version %d", Printable(status.run_name()),
                                        StateName(status.state()), HeadVersion(status)),
                        "1", style));
  if (status.has_first_evaluation() && !status.evaluations().empty()) {
    const auto& first = status.first_evaluation();
    const auto& last = status.evaluations(status.evaluations_size() - 1);
    lines.push_back(absl::StrFormat("   validation loss  %s at version %d", LossText(status, first.loss()),
                                    first.version()));
    if (last.version() != first.version()) {
      lines.push_back(
          absl::StrFormat("               ->   %s at version %d, held-out text, published parameters",
                          LossText(status, last.loss()), last.version()));
    }
  }
  if (const v1::EvaluationReport* const scored = NewestScored(status); scored != nullptr) {
    const std::vector<std::string> texts = TaskScoreTexts(*scored);
    for (size_t i = 0; i < texts.size(); ++i) {
      lines.push_back((i == 0 ? "   tasks            " : "                    ") + texts[i] +
                      (i == 0 ? absl::StrFormat(" at version %d", scored->version()) : ""));
    }
  }
  lines.push_back("   moved            " + TrafficText(status));
  lines.push_back(absl::StrFormat("   tokens           %s (%s planned), %s parameters",
                                  HumanCount(status.committed_tokens()), HumanCount(status.total_tokens()),
                                  HumanCount(status.parameters())));
  if (WorkersBringTheModel(status)) lines.push_back("   model            " + ModelText(status));
  lines.push_back("   data directory   " + status.data_directory());
  return lines;
}

}  // namespace atl
