#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/planted_defect.h"
#include "common/process_setup.h"
#include "common/standard_output.h"
#include "simulate/simulation.h"

// atoll-simulate: runs of a coordinator and its workers with faults, in virtual time.

namespace atl {
namespace {

// Numbers of seeds fit an int with room for their sum.
constexpr int kMostSeeds = 1'000'000'000;
// Each needs a part of the data, and the runs have 64.
constexpr int kMostWorkers = 64;
constexpr int kMostJobs = 256;

struct Flags {
  uint64_t first = 1;
  uint64_t count = 1;
  double hours = 1;
  uint32_t workers = 8;
  std::string mode = "each";
  uint32_t jobs = 1;
  std::string defect = "none";
  bool until_failure = false;
  bool quiet = false;
};

SimulatedMode ModeOf(const Flags& flags, uint64_t seed) {
  if (flags.mode == "blocking") return SimulatedMode::kBlocking;
  if (flags.mode == "overlapped") return SimulatedMode::kOverlapped;
  if (flags.mode == "async") return SimulatedMode::kAsync;
  constexpr SimulatedMode kModes[] = {SimulatedMode::kBlocking, SimulatedMode::kOverlapped,
                                      SimulatedMode::kAsync};
  return kModes[seed % 3];
}

std::string_view NameOf(SimulatedMode mode) {
  if (mode == SimulatedMode::kBlocking) return "blocking";
  return mode == SimulatedMode::kOverlapped ? "overlapped" : "async";
}

/// One line for a seed. Returns whether all properties held.
bool RunSeed(const Flags& flags, uint64_t seed) {
  const SimulatedMode mode = ModeOf(flags, seed);
  const SimulationResult result = Simulate(
      {.seed = seed, .mode = mode, .workers = flags.workers, .duration = Seconds(3600 * flags.hours)});
  if (flags.quiet && result.status.ok()) return true;
  std::string events;
  for (const auto& [kind, count] : result.events) absl::StrAppend(&events, " ", kind, "=", count);
  std::printf("seed %d %s: %s, %d versions of %d contributions, %d acknowledged, %d switches, %016llx%s\n",
              static_cast<int>(seed), std::string(NameOf(mode)).c_str(), result.status.ok() ? "ok" : "FAILED",
              static_cast<int>(result.versions), static_cast<int>(result.counted),
              static_cast<int>(result.acknowledged), static_cast<int>(result.switches),
              static_cast<unsigned long long>(result.fingerprint), events.c_str());
  if (!result.status.ok()) {
    std::printf("seed %d: %s\n  again: atoll-simulate --seed %d --mode %s --workers %d --hours %g\n",
                static_cast<int>(seed), result.status.ToString().c_str(), static_cast<int>(seed),
                std::string(NameOf(mode)).c_str(), static_cast<int>(flags.workers), flags.hours);
  }
  std::fflush(stdout);
  return result.status.ok();
}

/// Every `jobs`-th seed, in a process of its own.
bool RunShare(const Flags& flags, uint32_t job) {
  bool all = true;
  for (uint64_t seed = flags.first + job; seed < flags.first + flags.count; seed += flags.jobs) {
    all &= RunSeed(flags, seed);
    if (!all && flags.until_failure) return false;
  }
  return all;
}

int Run(const Flags& flags) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<pid_t> children;
  for (uint32_t job = 0; job < flags.jobs; ++job) {
    const pid_t child = ::fork();
    if (child == 0) _exit(RunShare(flags, job) ? 0 : 1);
    if (child > 0) children.push_back(child);
  }
  bool all = children.size() == flags.jobs;
  if (!all) std::printf("%d jobs could not be started\n", static_cast<int>(flags.jobs - children.size()));
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::printf("a job was ended by signal %d\n", WTERMSIG(status));
    all &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%d seeds in %.1f s, %.2f seeds/s: %s\n", static_cast<int>(flags.count), seconds,
              static_cast<double>(flags.count) / seconds, all ? "every property held" : "FAILED");
  const absl::Status written = FlushStandardOutput();
  if (!written.ok()) {
    std::fprintf(stderr, "atoll-simulate: %s\n", std::string(written.message()).c_str());
    return ToInt(DefaultExitCode(written));
  }
  return ToInt(all ? ExitCode::kOk : ExitCode::kInternal);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  CLI::App app(
      "Run a coordinator and its workers with faults in virtual time. One seed is one run, bit for bit.",
      "atoll-simulate");
  atl::Flags flags;
  app.add_option("--seed", flags.first, "Seed of the run, and the first one of several (--seeds)")
      ->check(CLI::Range(0, atl::kMostSeeds))
      ->default_val(1);
  app.add_option("--seeds", flags.count,
                 "Number of runs: with seeds --seed, --seed + 1, and so on, one after the other")
      ->check(CLI::Range(1, atl::kMostSeeds))
      ->default_val(1);
  app.add_option("--hours", flags.hours, "Virtual hours of each run")
      ->check(CLI::Range(0.01, 10000.0))
      ->default_val(1);
  app.add_option("--workers", flags.workers, "Workers of each run")
      ->check(CLI::Range(1, atl::kMostWorkers))
      ->default_val(8);
  app.add_option("--mode", flags.mode, "Mode of the runs: blocking, overlapped, async, or each in turn")
      ->check(CLI::IsMember({"each", "blocking", "overlapped", "async"}))
      ->default_val("each");
  app.add_option("--jobs", flags.jobs, "Number of seeds to run in parallel")
      ->check(CLI::Range(1, atl::kMostJobs))
      ->default_val(1);
  app.add_flag("--quiet", flags.quiet, "Print only seeds that fail");
  app.add_flag("--until-failure", flags.until_failure, "End each job at its first seed that fails");
#ifdef ATOLL_PLANTED_DEFECTS
  app.add_option("--defect", flags.defect, "Defect to plant (common/planted_defect.h)")
      ->check(CLI::IsMember(
          std::vector<std::string>(atl::kPlantedDefectNames.begin(), atl::kPlantedDefectNames.end())));
#endif
  if (const auto code = atl::ParseCommandLine(app, argc, argv)) return atl::ToInt(*code);
#ifdef ATOLL_PLANTED_DEFECTS
  const auto defect = std::ranges::find(atl::kPlantedDefectNames, flags.defect);
  atl::planted_defect = static_cast<atl::PlantedDefect>(defect - atl::kPlantedDefectNames.begin());
#endif
  return atl::Run(flags);
}
