// Kills a real coordinator again and again while synthetic workers push to it over real sockets, at random
// moments and at every named place, and looks at what is left each time.
//
//   crash_suite [--kills N] [--seed S] [--dir FOLDER]      defaults: 20, 1, a new folder in /tmp
//
// After every kill: no acknowledged contribution is lost, none counts twice, the head never goes back, and
// every version has the bits of a serial model that is computed here from the same contributions. Prints what
// it saw; exit code 0 only when all of that holds. docs/internals/crash_tests.md has the command of the long
// form.
#include <stdlib.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/integration/crash/judge.h"
#include "tests/integration/crash/serial_model.h"
#include "tests/integration/crash/synthetic_worker.h"
#include "tests/integration/crash/victim.h"

namespace atl {
namespace {

// In the order in which a contribution and its version meet them. Those of the seed come first of all, once
// each.
constexpr const char* kSeedPoints[] = {"ingest.written", "seed.ready", "seed.recorded"};
constexpr const char* kPoints[] = {
    "stage.written",     "stage.synced",      "ack.recorded",      "merge.begin",        "merge.done",
    "commit.ready",      "commit.recorded",   "publish.begin",     "publish.done",       "ingest.written",
    "ingest.done",       "stored.ready",      "stored.recorded",   "drop.contributions", "drop.versions",
    "checkpoint.copied", "checkpoint.sealed", "checkpoint.unnamed"};
constexpr const char* kRestorePoints[] = {"epoch.ready", "epoch.recorded"};

struct Options {
  int kills = 20;
  uint64_t seed = 1;
  std::string dir;
};

class CrashSuite {
 public:
  explicit CrashSuite(const Options& options)
      : options_(options),
        random_(options.seed),
        run_(SyntheticRun::Make(options.seed)),
        model_(run_),
        victim_(options.dir) {}

  absl::Status Run() {
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(options_.dir + "/run.yaml", run_.yaml));
    for (int kill = 0; kill < options_.kills; ++kill) {
      const absl::Status lived = OneLife(kill);
      if (!lived.ok())
        return absl::Status(lived.code(),
                            absl::StrFormat("kill %d (%s): %s", kill, plan_, std::string(lived.message())));
    }
    return LastLife();
  }

  void Report(double seconds) const {
    int restores = 0;
    for (const RoundRecord& record : model_.records()) restores += record.contributions.empty() ? 1 : 0;
    std::printf(
        "%d kills (%d at random, %d at named places) in %.0f s: %d versions, %d of them restores; %d "
        "contributions "
        "acknowledged, 0 lost, 0 counted twice, the head never back, every version equal to the serial "
        "model\n",
        options_.kills, random_kills_, options_.kills - random_kills_, seconds,
        static_cast<int>(model_.head().value()), restores, static_cast<int>(promises_.accepted().size()));
    for (const auto& [point, times] : died_at_) std::printf("  %-20s %d\n", point.c_str(), times);
  }

 private:
  /// What ends this life: a named place and passage, or nothing for a random moment.
  std::string PlanDeath(int kill) {
    const size_t seeds = std::size(kSeedPoints);
    if (static_cast<size_t>(kill) < seeds) return absl::StrFormat("%s:1", kSeedPoints[kill]);
    if (kill % 3 == 0) return "";
    if (kill % 10 == 7) return absl::StrFormat("%s:1", kRestorePoints[random_() % std::size(kRestorePoints)]);
    return absl::StrFormat("%s:%d", kPoints[next_point_++ % std::size(kPoints)], 1 + random_() % 4);
  }

  absl::Status OneLife(int kill) {
    plan_ = PlanDeath(kill);
    ATOLL_RETURN_IF_ERROR(victim_.Start(plan_));
    StartWorkers();
    const bool restores = plan_.starts_with("epoch.") || (plan_.empty() && kill % 4 == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % (plan_.empty() ? 700 : 100)));
    if (restores) RestoreSomething();
    const bool there = !plan_.empty() && victim_.AwaitDeath(Seconds(20));
    if (there) {
      ++died_at_[plan_.substr(0, plan_.find(':'))];
    } else {
      victim_.Kill();
      ++random_kills_;
    }
    return Judge();
  }

  void StartWorkers() {
    if (!workers_.empty() || !victim_.running()) return;
    for (uint32_t i = 0; i < kCrashWorkers; ++i) {
      workers_.push_back(std::make_unique<SyntheticWorker>(&run_, &promises_, victim_.data_address(), i));
    }
  }

  void RestoreSomething() {
    const auto name = victim_.NewestCheckpoint();
    if (!name.ok()) return;  // dead already, or none is there yet
    const auto restored = victim_.Restore(*name);
    if (restored.ok()) promises_.HeadIs(restored->front());
  }

  /// With the coordinator dead.
  absl::Status Judge() {
    for (const auto& worker : workers_) {
      if (!worker->complaint().empty()) return absl::DataLossError(worker->complaint());
    }
    const Promised promised = Promised::Now(promises_);
    ATOLL_ASSIGN_OR_RETURN(const auto remains, Inspect(victim_.data_dir()));
    if (!remains) {
      if (promised.published.empty()) return absl::OkStatus();
      return absl::DataLossError("somebody pulled parameters, and there are none");
    }
    for (const auto& [name, version] : remains->checkpoints) checkpoints_[name] = version;
    return JudgeRemains(promised, remains->recovery, checkpoints_, model_);
  }

  /// It still works, ends in good order, and its tensors are those of the serial model.
  absl::Status LastLife() {
    plan_ = "the last life";
    ATOLL_RETURN_IF_ERROR(victim_.Start(""));
    StartWorkers();
    const Version goal(promises_.head().value() + 3);
    for (int i = 0; i < 3000 && promises_.head() < goal; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (promises_.head() < goal) return absl::DeadlineExceededError("no more rounds: " + victim_.log());
    workers_.clear();
    const int code = victim_.Stop();
    if (code != 0)
      return absl::InternalError(absl::StrFormat("SIGTERM: exit code %d: %s", code, victim_.log()));
    ATOLL_RETURN_IF_ERROR(Judge());
    ATOLL_ASSIGN_OR_RETURN(const auto store,
                           OpenRocksDbStore({.data_dir = victim_.data_dir(), .create_if_missing = false}));
    ATOLL_ASSIGN_OR_RETURN(const FragmentTensors tensors, store->ReadVersion(run_.layout, model_.head()));
    if (tensors.parameters == model_.theta() && tensors.state[0] == model_.momentum())
      return absl::OkStatus();
    return absl::DataLossError("the stored tensors are not those of the serial model");
  }

  const Options options_;
  SplitMixGenerator random_;
  const SyntheticRun run_;
  Promises promises_;
  SerialModel model_;
  Victim victim_;
  std::vector<std::unique_ptr<SyntheticWorker>> workers_;
  std::map<std::string, Version> checkpoints_;
  std::string plan_;
  size_t next_point_ = 0;
  int random_kills_ = 0;
  std::map<std::string, int> died_at_;
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--kills" && absl::SimpleAtoi(argv[i + 1], &options.kills)) continue;
    if (flag == "--seed" && absl::SimpleAtoi(argv[i + 1], &options.seed)) continue;
    if (flag != "--dir") return false;
    options.dir = argv[i + 1];
  }
  return argc % 2 == 1;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: crash_suite [--kills N] [--seed S] [--dir FOLDER]\n");
    return 2;
  }
  char folder[] = "/tmp/atoll-crash-XXXXXX";
  const bool own_folder = options.dir.empty();
  if (own_folder) options.dir = ::mkdtemp(folder);
  absl::Status status = CreateDirs(options.dir);
  const auto started = std::chrono::steady_clock::now();
  CrashSuite suite(options);
  if (status.ok()) status = suite.Run();
  if (status.ok()) {
    suite.Report(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    if (own_folder) RemoveAll(options.dir).IgnoreError();
    return 0;
  }
  std::fprintf(stderr, "crash_suite --seed %llu: %s\nwhat is left: %s\n",
               static_cast<unsigned long long>(options.seed), status.ToString().c_str(), options.dir.c_str());
  return 1;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
