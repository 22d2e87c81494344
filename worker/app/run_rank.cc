#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "client/setup/setup_error.h"
#include "client/setup/worker_home.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/mutex.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "common/status.h"
#include "common/thread.h"
#include "protos/config/run_config_codec.h"
#include "worker/app/commands.h"
#include "worker/app/eval/task_suite.h"
#include "worker/app/follower_probes.h"
#include "worker/app/worker_start.h"
#include "worker/island/follow.h"
#include "worker/island/island.h"
#include "worker/island/island_replica.h"
#include "worker/island/island_store.h"
#include "worker/island/peer_link.h"
#include "worker/island/rank_process.h"
#include "worker/torch/device_count.h"
#include "worker/torch/hardware.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

constexpr Duration kNamesTheRank = Seconds(2);  // until a link knows which rank a collective has lost
constexpr Duration kGoodbye = Seconds(5);

std::string HostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

/// Ends this process when another rank is lost. A collective that waits for that rank cannot be ended
/// otherwise, and what this life has done since the last saved state is done again by the next one.
class Emergency {
 public:
  /// `asked_to_end`: by a signal, after which nobody of ours starts this rank again.
  Emergency(const Logger& log, std::function<bool()> asked_to_end)
      : log_(log), asked_to_end_(std::move(asked_to_end)) {}

  void Exit(const absl::Status& cause) const {
    // A link may say which rank it was, where a collective says only that a connection has ended.
    if (!absl::IsUnavailable(cause)) SleepThisThread(kNamesTheRank);
    const bool asked = asked_to_end_();
    log_.Error(absl::StrCat(std::string(cause.message()),
                            asked
                                ? "; this rank was asked to end and ends; the next start repeats what it has "
                                  "not pushed"
                                : "; this rank ends, so that all ranks start again"));
    log_.Flush();
    std::_Exit(asked ? ToInt(ExitCode::kUncounted) : kIslandBroken);
  }

 private:
  const Logger log_;
  const std::function<bool()> asked_to_end_;
};

/// Keeps a thread of LibTorch 1.13 from ending this process. That thread watches the store, and when the
/// connection is reset, it throws where nobody can catch it: another program answers there, or rank 0 has
/// just ended, and its next life is to be waited for. So the thread stops permanently, and what uses the
/// store fails by itself. For the main thread, which makes this object, says why the process ends. Once the
/// island is formed, everything but a closed connection of another thread ends the process as it would
/// without this.
class TorchThreadGuard {
 public:
  TorchThreadGuard(const Logger& log, const IslandPlace& place) {
    Said() = [this, log, place, main = std::this_thread::get_id()](const std::string& what) {
      const bool is_main = std::this_thread::get_id() == main;
      if (formed_ && (is_main || !SaysClosed(what))) before_();
      if (!is_main) {
        static std::atomic_flag said;  // a rank that waits opens the store again each second
        if (!said.test_and_set()) {
          log.Info("what answers at the store's address has closed a connection", {{"cause", what}});
        }
        while (true) ::pause();
      }
      log.Error(NotTheStore(place, what));
      log.Flush();
    };
    before_ = std::set_terminate(&End);
  }
  /// No destructor undoes it: a rank may have such a thread to the end of the process.
  void Formed() { formed_ = true; }
  TorchThreadGuard(const TorchThreadGuard&) = delete;
  TorchThreadGuard& operator=(const TorchThreadGuard&) = delete;

 private:
  static std::function<void(const std::string&)>& Said() {
    static auto* const said = new std::function<void(const std::string&)>;
    return *said;
  }
  [[noreturn]] static void End() {
    std::string what = "it ended without an exception";
    if (const std::exception_ptr current = std::current_exception()) {
      try {
        std::rethrow_exception(current);
      } catch (const std::exception& error) {
        what = error.what();
      } catch (...) {
        what = "an exception of an unknown kind";
      }
    }
    Said()(what);
    std::_Exit(ToInt(ExitCode::kUnavailable));
  }

  std::terminate_handler before_;
  std::atomic<bool> formed_ = false;
};

/// Asks rank 0 to drain the worker. Callbacks of Shutdown outlive the island, so it is closed before the link
/// ends.
class DrainRequest {
 public:
  explicit DrainRequest(PeerLink& first) : first_(&first) {}

  void Send() {
    const MutexLock lock(&mutex_);
    if (first_ != nullptr) (void)first_->Send(FrameType::kDrain, "");
  }
  void Close() {
    const MutexLock lock(&mutex_);
    first_ = nullptr;
  }

 private:
  Mutex mutex_;
  PeerLink* first_ ABSL_GUARDED_BY(mutex_);
};

/// One rank with what it needs to build its replica.
class Rank {
 public:
  /// `tasks`: null on ranks that are not asked for scores.
  Rank(WorkerFlags flags, RankGroup* group, TaskSuite* tasks, const Logger& log)
      : flags_(std::move(flags)),
        group_(group),
        tasks_(tasks),
        log_(log),
        device_notice_(DescribeDevice(flags_.device, flags_.threads, group->size()), log) {}

  absl::StatusOr<std::unique_ptr<Replica>> Build(const RankCall& call) {
    TorchReplicaOptions options;
    ATOLL_ASSIGN_OR_RETURN(options.run, RunConfigCodec().Parse(call.config));
    device_notice_.Say(options.run);
    options.device = flags_.device;
    options.threads = flags_.threads;
    options.encode_on_cpu = flags_.encode_on_cpu;
    options.dataset_folder = flags_.data;
    options.clock = &clock_;
    options.log = log_;
    options.ranks = group_;
    if (tasks_ != nullptr) {
      tasks_->CompareWith(options.run);
      options.score_tasks = [tasks = tasks_, context = options.run.model.context()](
                                TorchReplica& model, const TaskCall& task_call) {
        return tasks->Score(model, context, task_call);
      };
    }
    if (call.has_data) {
      options.partition = call.partition;
      options.partitions = call.partitions;
    }
    ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<TorchReplica> replica, CreateTorchReplica(options));
    return std::unique_ptr<Replica>(std::move(replica));
  }

 private:
  const WorkerFlags flags_;
  RankGroup* const group_;
  TaskSuite* const tasks_;
  const Logger log_;
  DeviceNotice device_notice_;
  const SystemClock clock_;
};

RankCall BuildCall(const JoinedRun& info) {
  RankCall call{.kind = RankCallKind::kBuild, .config = info.config_bytes};
  if (info.data.has_value()) {
    call.has_data = true;
    call.partition = info.data->partition;
    call.partitions = info.data->partitions;
  }
  return call;
}

absl::Status CheckFlags(const WorkerFlags& flags) {
  if (flags.cuda_graph) {
    return absl::InvalidArgumentError("--cuda-graph is for a worker without ranks: leave it out");
  }
  return CheckMemberFlags(flags.member);
}

absl::StatusOr<std::string> FindDevice(const std::string& given, const IslandPlace& place) {
  // Of a rank alone: the cause why there is no GPU, or that the name means nothing.
  if (!absl::StartsWith(given, "cuda:")) ATOLL_RETURN_IF_ERROR(ResolveDevice(given).status());
  return DeviceOfRank(given, place, CudaDevices());
}

ExitCode CodeOfNoIsland(const absl::Status& why, bool asked_to_end) {
  // An order to end is no loss, after which all ranks would start again.
  if (asked_to_end) return ExitCode::kInterrupted;
  // A port in use has the code that it has in all programs.
  return absl::IsAlreadyExists(why) ? ExitCode::kUnavailable : DefaultExitCode(why);
}

RankFacts FactsOf(const IslandPlace& place, const WorkerFlags& flags, const DataFacts& data) {
  return {.rank = place.rank,
          .size = place.size,
          .host = HostName(),
          .process = static_cast<uint64_t>(::getpid()),
          .version = absl::StrFormat("%s (%s)", kVersion, kGitRevision),
          .torch = TorchVersion(),
          .device = flags.device.substr(0, flags.device.find(':')),
          .dataset = data.summary.fingerprint,
          .name = flags.member.name};
}

int LeadRanks(const WorkerFlags& flags, Island& island, const DataFacts& data, TaskSuite& tasks,
              const Logger& log, Shutdown& shutdown) {
  auto home = OpenWorkerHome(flags.member, log);
  if (!home.ok()) {
    log.Error(std::string(home.status().message()));
    return ToInt(SetupExitCode(home.status()));
  }
  home->options.join.device = DescribeDevice(flags.device, flags.threads, island.group().size());
  home->options.join.dataset = data.summary;
  Rank rank(flags, &island.group(), &tasks, log);
  const auto build = [&](const JoinedRun& info) -> absl::StatusOr<std::unique_ptr<Replica>> {
    const RankCall call = BuildCall(info);
    ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<IslandReplica> replica,
                           IslandReplica::Build(
                               call, [&] { return rank.Build(call); }, &island.followers(), &island.group()));
    return std::unique_ptr<Replica>(std::move(replica));
  };
  const WorkerName name = home->options.join.worker;
  const WorkerOutcome outcome =
      LiveAsMember(flags, *std::move(home), data.texts, build, log.With("worker", name), shutdown);
  return outcome.restart ? kIslandRestart : ToInt(outcome.code);
}

int FollowRank(const WorkerFlags& flags, const IslandPlace& place, Island& island, const Logger& log,
               Shutdown& shutdown) {
  const SystemClock clock{};
  std::unique_ptr<FollowerProbes> probes;
  if (!place.supervised && place.local_rank == 0 && !island.on_host_of_first()) {
    auto started = FollowerProbes::Start(flags, &clock, log);
    if (!started.ok()) {
      log.Error(std::string(started.status().message()));
      return ToInt(ExitCode::kUsage);
    }
    probes = *std::move(started);
  }
  Rank rank(flags, &island.group(), nullptr, log);
  // The whole island drains, whichever rank is asked to: rank 0 decides when it is done.
  const auto drain = std::make_shared<DrainRequest>(island.first());
  shutdown.OnRequest([drain] { drain->Send(); });
  log.Info("follows rank 0");
  const auto code =
      Follow(island.first(), island.group(), [&](const RankCall& call) { return rank.Build(call); });
  drain->Close();
  if (code.ok()) {
    log.Info("rank 0 has ended, and so does this rank", {{"exit_code", *code}});
    return *code;
  }
  log.Error(std::string(code.status().message()));
  return kIslandBroken;
}

}  // namespace

int RunRank(const WorkerFlags& given, const IslandPlace& place, const Logger& all) {
  const Logger log = all.With("rank", place.rank);
  const auto fail = [&](const absl::Status& status, ExitCode code) {
    log.Error(std::string(status.message()));
    log.Flush();
    return ToInt(code);
  };
  auto shutdown = place.supervised ? Shutdown::Install(::getppid()) : Shutdown::Install();
  if (!shutdown.ok()) return fail(shutdown.status(), ExitCode::kInternal);
  if (place.supervised) {
    AcceptStopSignals();
    SetThreadName("atoll-worker");  // the name of the process, which /proc/self/exe has made "exe"
  }
  RaiseFileLimit();  // each token file stays open, and there may be thousands
  const absl::Status checked = CheckFlags(given);
  if (!checked.ok()) return fail(checked, SetupExitCode(checked));
  const auto data = FactsOfData(given.data);
  if (!data.ok()) return fail(data.status(), ExitCode::kBadFiles);
  // Rank 0 scores the tasks for all; the others check the same files, so that they fail before they meet.
  auto tasks = TaskSuite::Create(given.tasks, data->summary.tokenizer, log);
  if (!tasks.ok()) return fail(tasks.status(), ExitCode::kBadFiles);
  const auto device = FindDevice(given.device, place);
  if (!device.ok()) return fail(device.status(), ExitCode::kUsage);
  WorkerFlags flags = given;
  flags.device = *device;
  flags.threads = ThreadsOfRank(given.threads, HardwareOf("cpu").default_threads, place);
  // Below a supervisor, its exit code tells.
  const Emergency emergency(log, [&] { return !place.supervised && (*shutdown)->requested(); });
  std::function<bool()> asked_to_end = [&] { return (*shutdown)->requested(); };
  if (place.supervised) {
    // Ranks of one supervisor come together within seconds and then drain, so that the worker ends with 0.
    // But nobody starts the missing ones of a supervisor that was killed.
    asked_to_end = [supervisor = ::getppid()] { return ::getppid() != supervisor; };
  }
  // It outlives this call, as such a thread does.
  static auto* const guard = new TorchThreadGuard(log, place);
  auto island = Island::Form({.place = place,
                              .facts = FactsOf(place, flags, *data),
                              .device = flags.device,
                              .timeout = Seconds(given.island.rank_timeout_s),
                              .log = log,
                              .on_broken = [&](const absl::Status& cause) { emergency.Exit(cause); },
                              .on_drain = [&] { (*shutdown)->Request(); },
                              .asked_to_end = asked_to_end});
  if (!island.ok()) {
    const int code = fail(island.status(), CodeOfNoIsland(island.status(), (*shutdown)->requested()));
    const bool broken = absl::IsDeadlineExceeded(island.status()) || absl::IsUnavailable(island.status());
    return broken && place.supervised && !(*shutdown)->requested() ? kIslandBroken : code;
  }
  guard->Formed();
  int code = 0;
  if ((*island)->is_first()) {
    code = LeadRanks(flags, **island, *data, **tasks, log, **shutdown);
    (*island)->followers().Close(code, kGoodbye);
  } else {
    code = FollowRank(flags, place, **island, log, **shutdown);
  }
  log.Flush();
  return code;
}

}  // namespace atl
