// A coordinator with a thousand workers: all joined and heartbeating over a connection of their own, 64 of
// them at a time pulling a base and pushing a contribution to it, for a minute, everything on this machine's
// cores.
//
//   atoll-load-bench --workers 1000 --pushing 64 --seconds 60 --json load.json
//
// docs/reference/benchmarks.md ("Load") has what it showed.
#include <cstdio>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "bench/load/crowd.h"
#include "bench/load/report.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

absl::Status Run(const LoadSettings& settings, const std::string& json) {
  ATOLL_ASSIGN_OR_RETURN(const auto crowd, Crowd::Start(settings));
  ATOLL_ASSIGN_OR_RETURN(const LoadResult result, crowd->Measure());
  PrintLoad(settings, result);
  if (json.empty()) return absl::OkStatus();
  return WriteFileAtomically(json, LoadAsJson(settings, result) + "\n");
}

int Main(int argc, char** argv) {
  LoadSettings settings;
  settings.program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "atoll-coordinator").string();
  std::string json;
  CLI::App app("A coordinator with a thousand workers");
  app.add_option("--workers", settings.workers, "Joined and heartbeating")->capture_default_str();
  app.add_option("--pushing", settings.pushing, "Of them at once exchanging")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "How long")->capture_default_str();
  app.add_option("--mib", settings.mib, "float32 parameters, MiB")->capture_default_str();
  app.add_option("--coordinator", settings.program, "The coordinator program");
  app.add_option("--dir", settings.dir, "A folder on a disk")->capture_default_str();
  app.add_option("--json", json, "Write the figures to this file too");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings, json);
  if (!status.ok()) std::fprintf(stderr, "atoll-load-bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
