#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/dashboard.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/human.h"
#include "common/shutdown.h"
#include "common/standard_output.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr double kLeastTimeout = 0.5;
// Connection timeout for a coordinator that has answered before, so that the screen soon shows it as away.
constexpr Duration kConnectPatience = Seconds(1);

struct WatchOptions {
  double interval_s = 0.5;
  double line_interval_s = 5;
  bool until_finished = false;
  double give_up_after_s = 600;
};

/// Only an operator's `run extend` changes such a run.
bool HasEnded(const v1::GetStatusReply& status) {
  return status.state() == v1::RUN_STATE_FINISHED || status.state() == v1::RUN_STATE_STOPPED;
}

/// Decides when a run has ended: when its last version has been evaluated, or a minute after that version if
/// nobody evaluates it. Tasks take longer: then as soon as the coordinator waits for the evaluation no more.
/// A run that an operator stopped has ended at once.
class TheEnd {
 public:
  bool Reached(const v1::GetStatusReply& status, MonoTime now) {
    if (status.state() == v1::RUN_STATE_STOPPED) return true;
    if (status.state() != v1::RUN_STATE_FINISHED) return false;
    if (!finished_at_.has_value()) finished_at_ = now;
    uint64_t head = 0;
    for (const auto& fragment : status.fragments()) head = std::max<uint64_t>(head, fragment.version());
    const int n = status.evaluations_size();
    if (n > 0 && status.evaluations(n - 1).version() == head) return true;
    return now - *finished_at_ > kEvaluationPatience && !AwaitsTasks(status);
  }

 private:
  static bool AwaitsTasks(const v1::GetStatusReply& status) {
    return !status.config().evaluation().tasks().empty() &&
           std::ranges::any_of(status.waiting(), [](const v1::Waiting& wait) {
             return wait.what() == "the evaluation of the last version";
           });
  }
  static constexpr Duration kEvaluationPatience = Seconds(60);
  std::optional<MonoTime> finished_at_;
};

// Interval of log lines while nothing changes, so that a reader knows that the watch is alive.
constexpr Duration kQuietLineInterval = Seconds(30);
// Interval of log lines while the coordinator is away.
constexpr Duration kAwayLineInterval = Seconds(10);

/// The values whose change is worth a log line.
struct Milestone {
  explicit Milestone(const v1::GetStatusReply& status)
      : state(status.state()), workers(status.live_trainers()) {
    for (const auto& fragment : status.fragments()) version = std::max<uint64_t>(version, fragment.version());
  }
  bool operator==(const Milestone&) const = default;

  v1::RunState state;
  uint64_t workers;
  uint64_t version = 0;
};

/// Prints the view as a live screen, as plain lines when something changes, or as JSON lines at intervals.
class Screen {
 public:
  Screen(const GlobalOptions& global, const WatchOptions& options) : json_(global.json), options_(options) {
    if (!json_ && InspectTerminal().interactive) live_.emplace();
  }

  absl::Status Show(const v1::GetStatusReply& status, const v1::ListWorkersReply& workers, MonoTime now) {
    last_away_.reset();
    if (live_.has_value()) {
      const DashboardStyle style = InspectTerminal().style;  // the window may have changed
      live_->Draw(RenderDashboard(status, workers, style), style.height);
      return absl::OkStatus();
    }
    const Milestone milestone(status);
    if (!LineDue(milestone, now)) return absl::OkStatus();
    last_line_ = now;
    last_milestone_ = milestone;
    return Print(status);
  }

  /// Prints the final line: how the run ended. Replaces a live screen.
  absl::Status ShowEnd(const v1::GetStatusReply& status) {
    if (!live_.has_value()) return Print(status);
    const DashboardStyle style = InspectTerminal().style;
    live_.reset();
    PrintLines({RenderSummary(status, style).front()});
    return FlushStandardOutput();
  }

  /// `silence`: since the last answer.
  void ShowAway(const absl::Status& status, Duration silence, MonoTime now) {
    const std::string line = absl::StrFormat(" coordinator away, trying again (no answer for %s): %s",
                                             HumanDuration(silence), status.message());
    if (live_.has_value()) {
      live_->Draw({line}, 2);
    } else if (!last_away_.has_value() || now - *last_away_ >= kAwayLineInterval) {
      last_away_ = now;
      std::fprintf(stderr, "%s\n", line.c_str());
    }
  }

 private:
  bool LineDue(const Milestone& milestone, MonoTime now) const {
    if (!last_milestone_.has_value()) return true;
    const Duration silence = now - last_line_;
    if (silence < Seconds(options_.line_interval_s)) return false;
    return json_ || milestone != *last_milestone_ || silence >= kQuietLineInterval;
  }

  absl::Status Print(const v1::GetStatusReply& status) {
    if (json_) {
      ATOLL_RETURN_IF_ERROR(PrintJson(status, /*compact=*/true));
    } else {
      std::printf("%s\n", RenderLine(status).c_str());
    }
    return FlushStandardOutput();
  }

  const bool json_;
  const WatchOptions options_;
  std::optional<LiveView> live_;
  MonoTime last_line_{};
  std::optional<Milestone> last_milestone_;
  std::optional<MonoTime> last_away_;
};

/// The error for a coordinator that went away before the run finished.
absl::Status EndUnknown(const v1::GetStatusReply& last, const absl::Status& away, Duration silence) {
  return absl::UnavailableError(absl::StrFormat(
      "the coordinator has not answered for %s, and the run was not finished when it last did (%s). The run "
      "may have finished since: start the coordinator again and run 'atollctl status', or wait longer with "
      "--give-up-after. The last error: %s",
      HumanDuration(silence), RenderLine(last), away.message()));
}

/// Follows the run on `screen` until its end or Ctrl-C. Returns whether the end was seen, in `last`.
absl::StatusOr<bool> Follow(AdminClient& client, Shutdown& shutdown, const WatchOptions& options,
                            Screen& screen, v1::GetStatusReply& last) {
  const SystemClock clock{};
  TheEnd end;
  bool seen = false;
  bool away = false;
  MonoTime away_since{}, answered{};
  for (; !shutdown.requested(); shutdown.WaitFor(Seconds(options.interval_s))) {
    const auto status = client.GetStatus(1000);
    if (status.ok()) last = *status;
    const auto workers =
        status.ok() ? client.ListWorkers(true) : absl::StatusOr<v1::ListWorkersReply>(status.status());
    if (shutdown.requested()) break;
    const MonoTime now = clock.Now();
    if (!workers.ok()) {
      // A coordinator may leave as soon as its run has ended, before the last version is evaluated.
      if (options.until_finished && HasEnded(last)) return true;
      if (!seen) return workers.status();
      if (!away) away_since = now;
      away = true;
      const Duration silence = now - away_since;
      if (options.until_finished && silence > Seconds(options.give_up_after_s)) {
        return EndUnknown(last, workers.status(), silence);
      }
      screen.ShowAway(workers.status(), now - answered, now);
      continue;
    }
    if (!seen) client.ConnectWithin(kConnectPatience);
    seen = true;
    away = false;
    answered = now;
    if (options.until_finished && end.Reached(last, now)) return true;
    ATOLL_RETURN_IF_ERROR(screen.Show(last, *workers, now));
  }
  if (!seen) return absl::CancelledError("interrupted");
  return false;
}

absl::Status Watch(const GlobalOptions& global, const WatchOptions& options) {
  // A query waits at most --timeout, and at most --give-up-after or half a second.
  GlobalOptions patient = global;
  patient.timeout_s = std::min(global.timeout_s, std::max(options.give_up_after_s, kLeastTimeout));
  AdminClient client = MakeAdminClient(patient);
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Shutdown> shutdown, Shutdown::Install());
  const EndWithReader end_with_reader;
  // A coordinator that does not answer must not keep Ctrl-C waiting.
  shutdown->OnRequest([&client] { client.Cancel(); });
  v1::GetStatusReply last;
  {
    Screen screen(global, options);
    ATOLL_ASSIGN_OR_RETURN(const bool ended, Follow(client, *shutdown, options, screen, last));
    if (ended) return screen.ShowEnd(last);
  }
  if (options.until_finished) return absl::CancelledError("interrupted");
  if (!global.json) PrintLines(RenderSummary(last, InspectTerminal().style));
  return absl::OkStatus();
}

}  // namespace

void AddWatchCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = app.add_subcommand("watch",
                                         "Follow the run: a live screen on a terminal, elsewhere a line when "
                                         "something changes, JSON lines with --json");
  auto options = std::make_shared<WatchOptions>();
  command->add_option("--interval", options->interval_s, "Seconds between queries")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command
      ->add_option(
          "--line-interval", options->line_interval_s,
          "Minimum seconds between lines if the output is not a terminal. JSON lines are printed at this "
          "interval; other lines when the version, the state or the number of workers changed, or after 30 s")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--until-finished", options->until_finished, "Exit when the run is finished or stopped");
  command
      ->add_option(
          "--give-up-after", options->give_up_after_s,
          "Seconds to wait, then exit with 3: for the answer to the first query (at most --timeout), and "
          "with --until-finished also for a coordinator that stopped answering before the run finished")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9));
  command->callback(
      [&global, &action, options] { action = [&global, options] { return Watch(global, *options); }; });
  SetHelp(
      *command,
      {.examples = {{"atollctl watch", "Press Ctrl-C to end it"},
                    {"atollctl watch --until-finished > run.log"},
                    {"atollctl watch --json | jq -c .state"}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected},
       .notes = "The command continues when the coordinator restarts, but its first query must succeed."});
}

}  // namespace atl
