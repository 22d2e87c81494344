// Cuts the power under a real coordinator again and again while synthetic workers push to it over real
// sockets, and looks at what the disk holds each time.
//
//   power_cut_suite --dir FOLDER --disk FILE --clone FILE --mount FOLDER [--cuts N] [--seed S] [--preload
//   LIBRARY]
//
// FOLDER lies on the file system in the file --disk, which lies on a file system that can clone files. A cut
// clones that file: the disk as it is at that instant, without what is only in the page cache. The clone is
// mounted at --mount and opened by a second coordinator, while the first one goes on.
// tests/integration/power_cut.sh makes all of this.
//
// After every cut: no contribution that was acknowledged before it is lost, none counts twice, the head is
// not behind what was published, every version has the bits of the serial model, a coordinator starts on it,
// and `atollctl verify` recomputes its versions. --preload: a library for the coordinator that is cut, to
// show that the simulation can fail.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "tests/integration/crash/judge.h"
#include "tests/integration/crash/synthetic_worker.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr Duration kTimeout = Seconds(60);

struct Options {
  std::string dir;
  std::string checkpoint;
  std::string clone;
  std::string mount;
  std::string preload;
  int cuts = 3;
  uint64_t seed = 1;
};

absl::Status Command(const std::vector<std::string>& arguments) {
  const Finished done = RunToEnd(arguments, kTimeout);
  if (done.exit_code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("%s: exit code %d: %s", absl::StrJoin(arguments, " "), done.exit_code, done.output));
}

absl::Status Lost(const std::string& what, const absl::Status& why) {
  return absl::DataLossError(absl::StrFormat("%s: %s", what, why.ToString()));
}

/// The disk as it was at a cut, mounted.
class CutDisk {
 public:
  static absl::StatusOr<std::unique_ptr<CutDisk>> Take(const Options& options) {
    ATOLL_RETURN_IF_ERROR(Command({"/bin/cp", "--reflink=always", options.checkpoint, options.clone}));
    std::unique_ptr<CutDisk> cut(new CutDisk(options));
    ATOLL_RETURN_IF_ERROR(Command({"/bin/mount", "-o", "loop", options.clone, options.mount}));
    cut->mounted_ = true;
    return cut;
  }
  ~CutDisk() {
    if (mounted_) Command({"/bin/umount", options_.mount}).IgnoreError();
    RemoveFile(options_.clone).IgnoreError();
  }

 private:
  explicit CutDisk(const Options& options) : options_(options) {}

  const Options& options_;
  bool mounted_ = false;
};

class PowerCutSuite {
 public:
  explicit PowerCutSuite(const Options& options)
      : options_(options),
        random_(options.seed),
        run_(SyntheticRun::Make(options.seed)),
        model_(run_),
        victim_(options.dir) {}

  absl::Status Run() {
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(options_.dir + "/run.yaml", run_.yaml));
    // Only the coordinator that is cut: the workers and the checks are not under test.
    if (!options_.preload.empty()) ::setenv("LD_PRELOAD", options_.preload.c_str(), 1);
    const absl::Status started = victim_.Start("");
    ::unsetenv("LD_PRELOAD");
    ATOLL_RETURN_IF_ERROR(started);
    for (uint32_t i = 0; i < kCrashWorkers; ++i) {
      workers_.push_back(std::make_unique<SyntheticWorker>(&run_, &promises_, victim_.data_address(), i));
    }
    for (int cut = 1; cut <= options_.cuts; ++cut) {
      const absl::Status survived = Cut();
      if (survived.ok()) continue;
      return absl::Status(survived.code(),
                          absl::StrFormat("cut %d: %s", cut, std::string(survived.message())));
    }
    workers_.clear();
    if (const int code = victim_.Stop(); code != 0) {
      return absl::InternalError(absl::StrFormat("SIGTERM: exit code %d: %s", code, victim_.log()));
    }
    return absl::OkStatus();
  }

  void Report(double seconds) const {
    std::printf(
        "%d power cuts in %.0f s: %d versions, %d contributions acknowledged, 0 lost, 0 counted twice, the "
        "head never behind "
        "what was published, every version equal to the serial model; %d coordinators started on what was "
        "left, and "
        "recomputed it\n",
        options_.cuts, seconds, static_cast<int>(model_.head().value()),
        static_cast<int>(promises_.accepted().size()), restarted_);
  }

 private:
  absl::Status Cut() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random_() % 900));
    // Before the cut: whatever is promised by now must be on the disk then.
    const Promised promised = Promised::Now(promises_);
    ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<CutDisk> checkpoint, CutDisk::Take(options_));
    for (const auto& worker : workers_) {
      if (!worker->complaint().empty()) return absl::DataLossError(worker->complaint());
    }
    const std::string folder = options_.mount + "/run";
    const auto remains = Inspect(folder + "/data");
    if (!remains.ok()) return Lost("what is left cannot be read", remains.status());
    if (!remains->has_value()) {
      if (promised.published.empty()) return absl::OkStatus();
      return absl::DataLossError("somebody pulled parameters, and there are none");
    }
    ATOLL_RETURN_IF_ERROR(JudgeRemains(promised, (*remains)->recovery, {}, model_));
    return Recover(folder, promised);
  }

  /// A coordinator on what was left serves it, and ends in good order.
  absl::Status Recover(const std::string& folder, const Promised& promised) {
    // Not on the disk that was cut: a file of no importance may be gone.
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(folder + "/run.yaml", run_.yaml));
    Victim heir(folder);
    const absl::Status started = heir.Start("");
    if (!started.ok()) return Lost("no coordinator starts on what is left", started);
    if (model_.head() > Version(0)) {
      const absl::Status verified =
          Command({std::string(ATOLL_BIN_DIR) + "/atollctl", "--admin", heir.admin_address(), "verify"});
      if (!verified.ok()) return Lost("what is left does not verify", verified);
    }
    if (const int code = heir.Stop(); code != 0) {
      return absl::InternalError(absl::StrFormat("after a cut, SIGTERM: exit code %d: %s", code, heir.log()));
    }
    ++restarted_;
    ATOLL_ASSIGN_OR_RETURN(const auto remains, Inspect(heir.data_dir()));
    if (!remains) return absl::DataLossError("the coordinator that recovered left nothing");
    // It may have made a version more than the disk had, when all contributions to it were there.
    SerialModel model = model_;
    return JudgeRemains(promised, remains->recovery, {}, model);
  }

  const Options options_;
  SplitMixGenerator random_;
  const SyntheticRun run_;
  Promises promises_;
  SerialModel model_;
  Victim victim_;
  std::vector<std::unique_ptr<SyntheticWorker>> workers_;
  int restarted_ = 0;
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--cuts" && absl::SimpleAtoi(value, &options.cuts)) continue;
    if (flag == "--seed" && absl::SimpleAtoi(value, &options.seed)) continue;
    std::string* const text = flag == "--dir"       ? &options.dir
                              : flag == "--disk"    ? &options.checkpoint
                              : flag == "--clone"   ? &options.clone
                              : flag == "--mount"   ? &options.mount
                              : flag == "--preload" ? &options.preload
                                                    : nullptr;
    if (text == nullptr) return false;
    *text = value;
  }
  return argc % 2 == 1 && !options.dir.empty() && !options.checkpoint.empty() && !options.clone.empty() &&
         !options.mount.empty();
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(
        stderr,
        "usage: power_cut_suite --dir FOLDER --disk FILE --clone FILE --mount FOLDER [--cuts N] [--seed S] "
        "[--preload LIBRARY]\n");
    return 2;
  }
  const auto started = std::chrono::steady_clock::now();
  absl::Status status = CreateDirs(options.dir);
  if (status.ok()) {
    PowerCutSuite suite(options);
    status = suite.Run();
    if (status.ok()) {
      suite.Report(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    }
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "power_cut_suite --seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
               status.ToString().c_str());
  return absl::IsDataLoss(status) ? 1 : 3;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
