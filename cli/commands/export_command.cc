#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/hf_export.h"
#include "cli/json.h"
#include "cli/observer_client.h"
#include "cli/published_model.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/durable_file.h"
#include "common/human.h"
#include "common/output_target.h"
#include "common/partial_file.h"
#include "common/partial_folder.h"
#include "common/status.h"
#include "core/safetensors.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr char kFile[] = "safetensors";
constexpr char kFolder[] = "hf";

struct ExportFlags {
  std::string path = "model.safetensors";
  std::string format = kFile;
  std::string dtype = "fp32";
  HfExportOptions hf;
};

FileDtype DtypeOf(const std::string& flag) {
  if (flag == "bf16") return FileDtype::kBf16;
  return flag == "fp16" ? FileDtype::kF16 : FileDtype::kF32;
}

/// Writes the manifest's tensors from the fragments' flat vectors, without their padding.
absl::Status WriteTensors(DurableFile& file, const PublishedModel& model) {
  // Of the other families every reader knows the manifest, and an export keeps the bytes that it always had.
  std::map<std::string, std::string> metadata = VersionMetadata(model);
  if (model.options.model.external() != nullptr) metadata.merge(ManifestMetadata(model.manifest));
  metadata["format"] = "pt";
  const std::string header = SafetensorsHeader(model.manifest, metadata);
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(header))));
  uint64_t offset = header.size();
  for (const std::span<const float> tensor : TensorsOf(model)) {
    ATOLL_RETURN_IF_ERROR(file.WriteAt(offset, std::as_bytes(tensor)));
    offset += tensor.size_bytes();
  }
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

absl::StatusOr<PublishedModel> Pull(const GlobalOptions& global,
                                    const std::function<absl::Status(const RunOptions&)>& check) {
  ATOLL_ASSIGN_OR_RETURN(const auto client, MakeObserver(global, "export"));
  const Duration stall = std::max(Seconds(global.timeout_s), PullLimits().stall);
  return PullPublished(*client, stall, check);
}

/// Says which run's parameters were written: two runs can have the same name, id and version. A branch has
/// another epoch.
std::string Origin(const GlobalOptions& global, const PublishedModel& model) {
  return absl::StrFormat("%s parameters; run %s, epoch %016x, from %s",
                         HumanCount(static_cast<double>(model.manifest.elements())), Printable(model.run_id),
                         model.epoch, global.coordinator.address);
}

nlohmann::ordered_json OriginJson(const GlobalOptions& global, const PublishedModel& model) {
  return {{"version", model.fragments.front().version},
          {"parameters", model.manifest.elements()},
          {"run_id", model.run_id},
          {"epoch", absl::StrFormat("%d", model.epoch)},
          {"coordinator", global.coordinator.address}};
}

void ReportFile(const GlobalOptions& global, const std::string& path, const PublishedModel& model) {
  const bool stream = IsStream(path);
  if (global.json && !stream) {
    nlohmann::ordered_json report = {{"file", path}};
    report.update(OriginJson(global, model));
    PrintJson(report);
    return;
  }
  absl::FPrintF(stream ? stderr : stdout, "wrote %s: version %d, %d tensors, %s\n", path,
                model.fragments.front().version, model.manifest.tensors.size(), Origin(global, model));
}

void ReportFolder(const GlobalOptions& global, const ExportFlags& flags, const PublishedModel& model,
                  const std::vector<std::string>& files) {
  if (global.json) {
    nlohmann::ordered_json report = {{"folder", flags.path}, {"files", files}, {"dtype", flags.dtype}};
    report.update(OriginJson(global, model));
    PrintJson(report);
    return;
  }
  absl::PrintF("wrote %s: version %d, %d files, %s as %s\n", flags.path, model.fragments.front().version,
               files.size(), Origin(global, model), TorchName(flags.hf.dtype));
}

absl::Status AboutOut(const std::string& path, const absl::Status& status) {
  return {status.code(), absl::StrFormat("--out %s: %s", path, std::string(status.message()))};
}

absl::Status ExportFile(const GlobalOptions& global, const std::string& path) {
  // Create the file before the pull, so that a folder without write permission fails at once.
  const auto partial = PartialFile::Create(path);
  if (!partial.ok()) return AboutOut(path, partial.status());
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open((*partial)->partial(), OpenMode::kTruncate));
  const auto any_run = [](const RunOptions&) { return absl::OkStatus(); };
  ATOLL_ASSIGN_OR_RETURN(const PublishedModel model, Pull(global, any_run));
  ATOLL_RETURN_IF_ERROR(WriteTensors(file, model));
  ATOLL_RETURN_IF_ERROR((*partial)->Publish());
  ReportFile(global, path, model);
  return absl::OkStatus();
}

absl::Status ExportFolder(const GlobalOptions& global, const ExportFlags& flags) {
  const auto partial = PartialFolder::Create(flags.path);
  if (!partial.ok()) return AboutOut(flags.path, partial.status());
  TokenizerFiles tokenizer;
  const auto check = [&](const RunOptions& run) {
    ATOLL_RETURN_IF_ERROR(CheckHfExport(run));
    ATOLL_ASSIGN_OR_RETURN(tokenizer, TokenizerForExport(run, flags.hf));
    return absl::OkStatus();
  };
  ATOLL_ASSIGN_OR_RETURN(const PublishedModel model, Pull(global, check));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                         WriteHfExport((*partial)->partial(), model, std::move(tokenizer), flags.hf));
  ATOLL_RETURN_IF_ERROR((*partial)->Publish());
  ReportFolder(global, flags, model, files);
  return absl::OkStatus();
}

/// Options of a folder that were given for a file, and the other way round.
void CheckFlags(const ExportFlags& flags, const CLI::Option& out,
                const std::vector<CLI::Option*>& of_folder) {
  if (flags.format == kFolder) {
    if (out.count() == 0) throw CLI::ValidationError("--format hf", "give the folder to make: --out DIR");
    return;
  }
  for (const CLI::Option* const option : of_folder) {
    if (option->count() > 0) throw CLI::ValidationError(option->get_name(), "needs --format hf");
  }
}

}  // namespace

void AddExportCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = app.add_subcommand(
      "export",
      "Write the published parameters to a safetensors file or a Hugging Face folder on this machine");
  auto flags = std::make_shared<ExportFlags>();
  CLI::Option* const out =
      command->add_option("--out", flags->path, "Output file; with --format hf: folder to make")
          ->check(NotEmpty())
          ->capture_default_str();
  command
      ->add_option("--format", flags->format,
                   "safetensors: one file of float32 values; hf: a folder that transformers loads")
      ->check(CLI::IsMember({kFile, kFolder}))
      ->capture_default_str();
  const std::vector<CLI::Option*> of_folder = {
      command
          ->add_option("--dtype", flags->dtype,
                       "Type of the values in the folder. bf16 and fp16 round to nearest, ties to even")
          ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
          ->capture_default_str(),
      command
          ->add_option("--shard-bytes", flags->hf.shard_bytes,
                       "Maximum bytes of tensors in one file of the folder; larger models get several files "
                       "and an index")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 50))
          ->capture_default_str(),
      command
          ->add_option("--tokenizer", flags->hf.tokenizer,
                       "Copy the tokenizer's files of this folder (tokenizer.json, vocab.json, ...)")
          ->check(NotEmpty())};
  command->callback([&global, &action, flags, out, of_folder] {
    CheckFlags(*flags, *out, of_folder);
    flags->hf.dtype = DtypeOf(flags->dtype);
    action = [&global, flags] {
      return flags->format == kFolder ? ExportFolder(global, *flags) : ExportFile(global, flags->path);
    };
  });
  SetHelp(*command, {.examples = {{"atollctl export --out model.safetensors"},
                                  {"atollctl export --format hf --out my-gpt2 --dtype bf16 --tokenizer gpt2",
                                   "A folder for AutoModelForCausalLM.from_pretrained(\"my-gpt2\")"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                    ExitCode::kBadFiles},
                     .notes = "Tensors have the names of Hugging Face's GPT2LMHeadModel or LlamaForCausalLM, "
                              "or of an external model those that its workers gave them."});
}

}  // namespace atl
