// A whole exchange of parameters (push, mean, Nesterov, publish, pull) by the real coordinator program and
// workers that compute nothing, beside what moving the same bytes costs by itself in the same run: a bare
// gRPC stream, a raw TCP stream, and PyTorch's gloo all-reduce when python3 has torch.
//
//   atoll-exchange-bench --workers 1,2,4 --mib 256 --codec fp32,bf16,e3m0:delta-e3m0 --json exchange.json
//
// docs/reference/benchmarks.md ("Exchange", "Bytes on the wire") has what it showed.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "bench/exchange/bare.h"
#include "bench/exchange/measure.h"
#include "common/file.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {
namespace {

absl::StatusOr<CodecKind> CodecNamed(const std::string& name) {
  for (const CodecKind kind : kCodecKinds) {
    if (std::string(CodecName(kind)) == name) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no codec '", name, "'"));
}

constexpr std::string_view kDeltaPrefix = "delta-";

/// PUSH[:PULL][+zstd]; the pull is fp32 unless it is named, or the push is one of its encodings. delta-CODEC:
/// float32 is published, and who has the version before gets the difference.
absl::StatusOr<Recipe> RecipeNamed(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  std::string rest = name;
  if (rest.ends_with("+zstd")) {
    recipe.zstd = true;
    rest.resize(rest.size() - 5);
  }
  const size_t colon = rest.find(':');
  ATOLL_ASSIGN_OR_RETURN(recipe.push, CodecNamed(rest.substr(0, colon)));
  if (colon != std::string::npos && rest.substr(colon + 1).starts_with(kDeltaPrefix)) {
    ATOLL_ASSIGN_OR_RETURN(recipe.delta, CodecNamed(rest.substr(colon + 1 + kDeltaPrefix.size())));
  } else if (colon != std::string::npos) {
    ATOLL_ASSIGN_OR_RETURN(recipe.pull, CodecNamed(rest.substr(colon + 1)));
  } else if (recipe.push == CodecKind::kBf16) {
    recipe.pull = CodecKind::kBf16;
  }
  return recipe;
}

absl::Status Run(ExchangeSettings& settings, const std::vector<std::string>& codecs,
                 const std::vector<std::string>& stores) {
  settings.stores.clear();
  for (const std::string& name : stores) {
    if (name != "memory" && name != "disk") {
      return absl::InvalidArgumentError(absl::StrCat("--store: '", name, "' is neither memory nor disk"));
    }
    settings.stores.push_back(name == "disk" ? StoreKind::kDisk : StoreKind::kMemory);
  }
  for (const std::string& name : codecs) {
    ATOLL_ASSIGN_OR_RETURN(settings.recipes.emplace_back(), RecipeNamed(name));
  }
  ATOLL_RETURN_IF_ERROR(CreateDirs(settings.dir));
  ATOLL_ASSIGN_OR_RETURN(const ExchangeReport report, MeasureExchange(settings));
  PrintReport(settings, report);
  if (settings.json.empty()) return absl::OkStatus();
  return WriteFileAtomically(settings.json, ReportAsJson(settings, report) + "\n");
}

int Main(int argc, char** argv) {
  ExchangeSettings settings;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  settings.self = self.string();
  settings.program = (self.parent_path() / "atoll-coordinator").string();
  settings.dir = ".";
  settings.memory_dir = "/dev/shm";
  settings.python = "/usr/bin/python3";
  settings.gloo_script = ATOLL_SOURCE_DIR "/bench/exchange/gloo_allreduce.py";
  std::vector<std::string> codecs = {"fp32", "bf16"};
  std::vector<std::string> stores = {"memory", "disk"};
  std::string serve_bare;
  CLI::App app("A whole exchange of parameters beside what moving its bytes costs");
  app.add_option("--workers", settings.workers, "Numbers of workers")->delimiter(',')->capture_default_str();
  app.add_option("--mib", settings.mib, "float32 parameters, MiB")->capture_default_str();
  app.add_option("--codec", codecs, "PUSH[:PULL][+zstd], PULL may be delta-CODEC, ...")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--store", stores, "Where the coordinator keeps its data: memory, disk")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Measured rounds of each")->capture_default_str();
  app.add_option("--compute", settings.compute_s, "Seconds between rounds")->capture_default_str();
  app.add_option("--coordinator", settings.program, "The coordinator program");
  app.add_option("--dir", settings.dir, "A folder on the disk to be measured")->capture_default_str();
  app.add_option("--memory-dir", settings.memory_dir, "A folder in memory")->capture_default_str();
  app.add_option("--python", settings.python, "A python3 with torch, for gloo; empty: without");
  app.add_option("--json", settings.json, "Write the figures to this file too");
  app.add_option("--serve-bare", serve_bare, "(for itself) the other side of the bare streams");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = serve_bare.empty() ? Run(settings, codecs, stores) : ServeBare(serve_bare);
  if (!status.ok()) std::fprintf(stderr, "atoll-exchange-bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
