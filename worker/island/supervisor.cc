#include "worker/island/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/exit_codes.h"
#include "common/line_writer.h"
#include "common/status.h"
#include "worker/island/island.h"
#include "worker/island/placement.h"
#include "worker/island/rank_process.h"
#include "worker/island/store_folder.h"

namespace atl {
namespace {

constexpr Duration kLook = Seconds(0.1);  // how often it looks after the processes
constexpr Duration kOwnEnd = Seconds(2);  // for the others to name what they have lost
constexpr Duration kFirstPause = Seconds(0.5);
constexpr Duration kLongestPause = Seconds(30);

/// Why the ranks of one life are gone.
struct LifeEnd {
  uint32_t rank = 0;  // that ended first, of those that did not only miss another
  RankEnd end;
  bool silent = false;  // the others missed it while its process lived: it was frozen, or stuck

  std::string Text() const { return silent ? "did not answer the others, and was killed" : end.Text(); }
};

/// The processes from their start until all have ended.
class Life {
 public:
  Life(const SupervisorOptions& options, Shutdown& shutdown, LineWriter& lines)
      : options_(options), shutdown_(shutdown), lines_(lines) {}

  absl::Status Start() {
    ATOLL_RETURN_IF_ERROR(store_.Make());
    for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
      auto process = RankProcess::Start(rank, options_.arguments, EnvironmentOf(rank));
      if (!process.ok()) {
        KillAll();
        for (; AnyRunning(); AwaitLog()) NoteEnds();
        return process.status();
      }
      processes_.push_back(*std::move(process));
    }
    return absl::OkStatus();
  }

  /// Blocks until all have ended.
  LifeEnd Watch() {
    std::optional<MonoTime> kill_at;
    while (AnyRunning()) {
      AwaitLog();
      if (shutdown_.requested() && !signalled_) {
        signalled_ = true;
        for (const RankProcess& process : processes_) process.Signal(SIGTERM);
      }
      NoteEnds();
      if (first_end_.has_value() && !kill_at.has_value()) kill_at = SteadyNow() + kOwnEnd;
      if (kill_at.has_value() && SteadyNow() >= *kill_at) {
        NoteSilent();
        KillAll();
      }
    }
    for (RankProcess& process : processes_) process.ForwardLog(options_.log, lines_, /*all=*/true);
    if (cause_.has_value()) return *cause_;
    if (!silent_.has_value()) return *first_end_;
    return {.rank = *silent_, .end = first_end_->end, .silent = true};
  }

 private:
  std::vector<std::string> EnvironmentOf(uint32_t rank) const {
    std::vector<std::string> variables;
    for (char* const* one = options_.environment; *one != nullptr; ++one) variables.emplace_back(*one);
    const std::string size = absl::StrCat(options_.ranks);
    for (const std::string& own :
         {absl::StrCat("RANK=", rank), absl::StrCat("LOCAL_RANK=", rank), "WORLD_SIZE=" + size,
          "LOCAL_WORLD_SIZE=" + size, absl::StrCat(kSupervisedVariable, "=", store_.file())}) {
      std::erase_if(variables, [&](const std::string& given) {
        return given.compare(0, given.find('='), own, 0, own.find('=')) == 0;
      });
      variables.push_back(own);
    }
    return variables;
  }

  bool AnyRunning() const {
    return std::ranges::any_of(processes_, [](const RankProcess& process) { return process.running(); });
  }

  void AwaitLog() {
    std::vector<pollfd> logs;
    for (const RankProcess& process : processes_) {
      logs.push_back(
          {.fd = process.running() ? process.log_descriptor() : -1, .events = POLLIN, .revents = 0});
    }
    ::poll(logs.data(), logs.size(),
           static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kLook).count()));
    for (RankProcess& process : processes_) process.ForwardLog(options_.log, lines_);
  }

  void NoteEnds() {
    for (RankProcess& process : processes_) {
      if (!process.CheckEnd()) continue;
      const LifeEnd end{.rank = process.rank(), .end = *process.end()};
      if (!first_end_.has_value()) first_end_ = end;
      const bool missed_another = !end.end.by_signal && end.end.code == kIslandBroken;
      if (!killing_ && !cause_.has_value() && !missed_another) cause_ = end;
    }
  }

  /// Whom the others miss, if they have all ended for that.
  void NoteSilent() {
    if (killing_ || cause_.has_value()) return;
    const auto found =
        std::ranges::find_if(processes_, [](const RankProcess& process) { return process.running(); });
    if (found != processes_.end()) silent_ = found->rank();
  }

  void KillAll() {
    killing_ = true;
    for (const RankProcess& process : processes_) process.Signal(SIGKILL);
  }

  const SupervisorOptions& options_;
  Shutdown& shutdown_;
  LineWriter& lines_;
  StoreFolder store_;  // outlives the processes, which write in it when they end
  std::vector<RankProcess> processes_;
  std::optional<LifeEnd> first_end_;
  std::optional<LifeEnd> cause_;
  std::optional<uint32_t> silent_;
  bool signalled_ = false;
  bool killing_ = false;
};

/// The ranks' log lines. They go past the logger, which would print their time and level again.
LineWriter::Options RankLines(const Logger& log) {
  LineWriter::Options options;
  options.fd = STDERR_FILENO;
  options.dropped_text = [log](uint64_t lines, double seconds) {
    log.Warning("lines of the ranks were dropped: nothing read the log, and its queue was full",
                {{"lines", lines}, {"since_s", seconds}});
    return std::string();
  };
  return options;
}

/// The supervisor's exit code, unless the island is to be started again after such an end.
std::optional<int> CodeForGood(const LifeEnd& end, const Shutdown& shutdown, const Logger& log) {
  if (!end.end.by_signal && end.end.code != kIslandBroken && end.end.code != kIslandRestart) {
    return end.end.code;
  }
  if (!shutdown.requested() && !end.end.WasOrdered()) return std::nullopt;
  if (end.end.by_signal || end.end.code == kIslandBroken) {
    log.Warning(
        "asked to end, and lost a rank before it had drained: the next start repeats what is not pushed",
        {{"rank", end.rank}, {"cause", end.Text()}});
  }
  if (!end.end.by_signal && end.end.code == kIslandBroken) return ToInt(ExitCode::kUncounted);
  return end.end.by_signal ? 128 + end.end.code : ToInt(ExitCode::kInterrupted);
}

/// A folder for temporary files that is not there is no file of the user's, which kBadFiles means.
int CodeOfStart(const absl::Status& started) {
  return ToInt(absl::IsNotFound(started) ? ExitCode::kStorage : LocalExitCode(started));
}

}  // namespace

int SuperviseRanks(const SupervisorOptions& options, Shutdown& shutdown) {
  uint32_t restarts = 0;
  bool has_lived = false;
  LineWriter lines(RankLines(options.log));
  while (true) {
    options.log.Info("starting the ranks", {{"ranks", options.ranks}});
    const MonoTime begin = SteadyNow();
    Life life(options, shutdown, lines);
    LogFields fields;
    if (const absl::Status started = life.Start(); !started.ok()) {
      if (!has_lived) {
        options.log.Error(std::string(started.message()));
        return CodeOfStart(started);
      }
      // A disk that is full for a moment, for example.
      fields = {{"cause", std::string(started.message())}};
    } else {
      has_lived = true;
      const LifeEnd end = life.Watch();
      if (const std::optional<int> code = CodeForGood(end, shutdown, options.log)) return *code;
      if (end.end.code == kIslandRestart && !end.end.by_signal) continue;
      if (SteadyNow() - begin >= options.settled) restarts = 0;
      fields = {{"rank", end.rank}, {"cause", end.Text()}};
    }
    if (restarts == options.max_restarts) {
      options.log.Error(
          absl::StrCat("a rank was lost again after ", restarts,
                       " restarts; giving up. Find out why it ends, then start this worker again: it "
                       "goes on with its last saved state"),
          fields);
      return ToInt(ExitCode::kUnavailable);
    }
    ++restarts;
    options.log.Warning(
        absl::StrCat("a rank is lost; all ranks start again from the last saved state (restart ", restarts,
                     " of at most ", options.max_restarts, ")"),
        fields);
    const Duration pause = std::min(kFirstPause * (1 << std::min(restarts - 1, 6U)), kLongestPause);
    if (shutdown.WaitFor(pause)) return ToInt(ExitCode::kInterrupted);
  }
}

}  // namespace atl
