#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/observer_client.h"
#include "cli/pull_model.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/durable_file.h"
#include "common/human.h"
#include "common/output_target.h"
#include "common/partial_file.h"
#include "common/status.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"
#include "core/safetensors.h"
#include "nlohmann/json.hpp"
#include "protos/config/run_config.h"
#include "protos/wire/manifest.h"

namespace atl {
namespace {

/// Writes the manifest's tensors from the fragments' flat vectors, without their padding.
absl::Status WriteTensors(DurableFile& file, const Manifest& manifest,
                          const std::vector<FragmentLayout>& layouts,
                          const std::vector<PulledFragment>& fragments, const RunOptions& options) {
  std::vector<std::span<const float>> tensors(manifest.tensors.size());
  for (size_t f = 0; f < layouts.size(); ++f) {
    for (const TensorSlot& slot : layouts[f].slots) {
      tensors[slot.tensor] = std::span(fragments[f].values).subspan(slot.offset, slot.elements);
    }
  }
  // Of the other families every reader knows the manifest, and an export keeps the bytes that it always had.
  std::map<std::string, std::string> metadata;
  if (options.model.external() != nullptr) metadata = ManifestMetadata(manifest);
  metadata["format"] = "pt";
  metadata["atoll_version"] = absl::StrFormat("%d", fragments.front().version);
  // In an overlapped run, fragments have different versions.
  if (options.sync.mode == SyncMode::kOverlapped) {
    for (size_t f = 0; f < fragments.size(); ++f) {
      metadata[absl::StrFormat("atoll_version_of_fragment_%d", f)] =
          absl::StrFormat("%d", fragments[f].version);
    }
  }
  const std::string header = SafetensorsHeader(manifest, metadata);
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(header))));
  uint64_t offset = header.size();
  for (const std::span<const float> tensor : tensors) {
    ATOLL_RETURN_IF_ERROR(file.WriteAt(offset, std::as_bytes(tensor)));
    offset += tensor.size_bytes();
  }
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

struct Exported {
  uint64_t version = 0;
  size_t tensors = 0;
  uint64_t parameters = 0;
  std::string run_id;
  uint64_t epoch = 0;
};

absl::StatusOr<Exported> Pull(const GlobalOptions& global, DurableFile& file) {
  ATOLL_ASSIGN_OR_RETURN(const auto client, MakeObserver(global, "export"));
  const v1::JoinReply& run = client->run();
  if (run.manifest().tensors().empty()) {
    return FromCoordinator(absl::FailedPreconditionError(
        "the run has no parameters yet: no worker has seeded it; start a worker first"));
  }
  ATOLL_ASSIGN_OR_RETURN(const Manifest manifest, ManifestFromProto(run.manifest()));
  ATOLL_ASSIGN_OR_RETURN(const RunOptions options, ToRunOptions(run.config()));
  ATOLL_ASSIGN_OR_RETURN(
      const auto layouts,
      PlanFragments(manifest, static_cast<uint32_t>(run.fragments_size()), options.sync.pattern));
  const Duration stall = std::max(Seconds(global.timeout_s), PullLimits().stall);
  ATOLL_ASSIGN_OR_RETURN(const auto fragments, PullModel(*client, layouts, options.sync.mode, stall));
  ATOLL_RETURN_IF_ERROR(WriteTensors(file, manifest, layouts, fragments, options));
  return Exported{.version = fragments.front().version,
                  .tensors = manifest.tensors.size(),
                  .parameters = manifest.elements(),
                  .run_id = run.run_id(),
                  .epoch = run.epoch()};
}

/// Says which run's parameters were written: two runs can have the same name, id and version. A branch has
/// another epoch.
void Report(const GlobalOptions& global, const std::string& path, const Exported& exported) {
  const bool stream = IsStream(path);
  if (global.json && !stream) {
    PrintJson({{"file", path},
               {"version", exported.version},
               {"parameters", exported.parameters},
               {"run_id", exported.run_id},
               {"epoch", absl::StrFormat("%d", exported.epoch)},
               {"coordinator", global.coordinator.address}});
    return;
  }
  absl::FPrintF(stream ? stderr : stdout,
                "wrote %s: version %d, %d tensors, %s parameters; run %s, epoch %016x, from %s\n", path,
                exported.version, exported.tensors, HumanCount(static_cast<double>(exported.parameters)),
                Printable(exported.run_id), exported.epoch, global.coordinator.address);
}

absl::Status Export(const GlobalOptions& global, const std::string& path) {
  // Create the file before the pull, so that a folder without write permission fails at once.
  const auto partial = PartialFile::Create(path);
  if (!partial.ok()) {
    return {partial.status().code(),
            absl::StrFormat("--out %s: %s", path, std::string(partial.status().message()))};
  }
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open((*partial)->partial(), OpenMode::kTruncate));
  const auto exported = Pull(global, file);
  if (!exported.ok()) return exported.status();
  ATOLL_RETURN_IF_ERROR((*partial)->Publish());
  Report(global, path, *exported);
  return absl::OkStatus();
}

}  // namespace

void AddExportCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command =
      app.add_subcommand("export", "Write the published parameters to a safetensors file on this machine");
  auto path = std::make_shared<std::string>("model.safetensors");
  command->add_option("--out", *path, "Output file")->check(NotEmpty())->capture_default_str();
  command->callback([&global, &action, path] { action = [&global, path] { return Export(global, *path); }; });
  SetHelp(*command, {.examples = {{"atollctl export --out model.safetensors"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                    ExitCode::kBadFiles},
                     .notes = "Tensors have the names of Hugging Face's GPT2LMHeadModel or LlamaForCausalLM, "
                              "or of an external model those that its workers gave them."});
}

}  // namespace atl
