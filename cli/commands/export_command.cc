#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/export_files.h"
#include "cli/hf_export.h"
#include "cli/json.h"
#include "cli/observer_client.h"
#include "cli/published_model.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/human.h"
#include "common/output_target.h"
#include "common/partial_folder.h"
#include "common/status.h"
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
  ParametersQuery query;  // outer_state: --with-momentum
};

FileDtype DtypeOf(const std::string& flag) {
  if (flag == "bf16") return FileDtype::kBf16;
  return flag == "fp16" ? FileDtype::kF16 : FileDtype::kF32;
}

/// Only the admin port has more than the newest version. A caller who gave only its address, or gave it in
/// the stronger way, means the run that is there.
bool ThroughAdminPort(const GlobalOptions& global, const ParametersQuery& query) {
  return !query.newest() || query.outer_state || global.admin.source > global.coordinator.source;
}

absl::StatusOr<PublishedModel> Get(const GlobalOptions& global, const ParametersQuery& query,
                                   const std::function<absl::Status(const RunOptions&)>& check) {
  const auto check_all = [&](const RunOptions& run) {
    if (query.outer_state) ATOLL_RETURN_IF_ERROR(CheckMomentum(run));
    return check(run);
  };
  if (ThroughAdminPort(global, query)) {
    AdminClient client = MakeAdminClient(global);
    return ReadStored(client, query, check_all);
  }
  ATOLL_ASSIGN_OR_RETURN(const auto client, MakeObserver(global, "export"));
  const Duration stall = std::max(Seconds(global.timeout_s), PullLimits().stall);
  return PullPublished(*client, stall, check_all);
}

/// What was written: "version 3 of checkpoint 'x'".
std::string VersionText(const ParametersQuery& query, const PublishedModel& model) {
  std::string text = absl::StrFormat("version %d", model.fragments.front().version);
  if (!query.checkpoint.empty()) absl::StrAppend(&text, " of checkpoint '", query.checkpoint, "'");
  return text;
}

/// Says which run's parameters were written: two runs can have the same name, id and version. A branch has
/// another epoch.
std::string Origin(const GlobalOptions& global, const ParametersQuery& query, const PublishedModel& model) {
  const bool admin = ThroughAdminPort(global, query);
  return absl::StrFormat("%s parameters as %s; run %s, epoch %016x, from %s",
                         HumanCount(static_cast<double>(model.manifest.elements())),
                         admin ? "the coordinator computes with them" : "published", Printable(model.run_id),
                         model.epoch, admin ? global.admin.address : global.coordinator.address);
}

nlohmann::ordered_json OriginJson(const GlobalOptions& global, const ParametersQuery& query,
                                  const PublishedModel& model) {
  nlohmann::ordered_json origin = {{"version", model.fragments.front().version},
                                   {"parameters", model.manifest.elements()},
                                   {"run_id", model.run_id},
                                   {"epoch", absl::StrFormat("%016x", model.epoch)}};
  if (!query.checkpoint.empty()) origin["checkpoint"] = query.checkpoint;
  origin["values"] = ThroughAdminPort(global, query) ? "computed" : "published";
  if (ThroughAdminPort(global, query)) {
    origin["admin"] = global.admin.address;
  } else {
    origin["coordinator"] = global.coordinator.address;
  }
  return origin;
}

void ReportFile(const GlobalOptions& global, const ExportFlags& flags, const PublishedModel& model,
                const std::string& momentum) {
  const bool stream = IsStream(flags.path);
  if (global.json && !stream) {
    nlohmann::ordered_json report = {{"file", flags.path}};
    if (!momentum.empty()) report["momentum"] = momentum;
    report.update(OriginJson(global, flags.query, model));
    PrintJson(report);
    return;
  }
  absl::FPrintF(stream ? stderr : stdout, "wrote %s: %s, %d tensors, %s\n", flags.path,
                VersionText(flags.query, model), model.manifest.tensors.size(),
                Origin(global, flags.query, model));
  if (!momentum.empty()) absl::PrintF("wrote %s: the outer optimizer's momentum\n", momentum);
}

void ReportFolder(const GlobalOptions& global, const ExportFlags& flags, const PublishedModel& model,
                  const std::vector<std::string>& files, const std::string& momentum) {
  if (global.json) {
    nlohmann::ordered_json report = {{"folder", flags.path}, {"files", files}, {"dtype", flags.dtype}};
    if (!momentum.empty()) report["momentum"] = momentum;
    report.update(OriginJson(global, flags.query, model));
    PrintJson(report);
    return;
  }
  absl::PrintF("wrote %s: %s, %d files, %s as %s\n", flags.path, VersionText(flags.query, model),
               files.size(), Origin(global, flags.query, model), TorchName(flags.hf.dtype));
  if (!momentum.empty()) absl::PrintF("wrote %s: the outer optimizer's momentum\n", momentum);
}

/// The file beside the parameters, if it was asked for.
absl::StatusOr<std::optional<ExportFile>> CreateMomentum(const ExportFlags& flags) {
  if (!flags.query.outer_state) return std::optional<ExportFile>();
  ATOLL_ASSIGN_OR_RETURN(ExportFile file, ExportFile::Create("--with-momentum", MomentumPath(flags.path)));
  return std::optional<ExportFile>(std::move(file));
}

/// Before the parameters appear: a program that finds these finds both.
absl::StatusOr<std::string> FinishMomentum(std::optional<ExportFile>& file, const PublishedModel& model) {
  if (!file) return std::string();
  ATOLL_RETURN_IF_ERROR(file->WriteOuterState(model));
  ATOLL_RETURN_IF_ERROR(file->Publish());
  return file->path();
}

absl::Status ExportToFile(const GlobalOptions& global, const ExportFlags& flags) {
  ATOLL_ASSIGN_OR_RETURN(ExportFile file, ExportFile::Create("--out", flags.path));
  ATOLL_ASSIGN_OR_RETURN(std::optional<ExportFile> beside, CreateMomentum(flags));
  const auto any_run = [](const RunOptions&) { return absl::OkStatus(); };
  ATOLL_ASSIGN_OR_RETURN(const PublishedModel model, Get(global, flags.query, any_run));
  ATOLL_RETURN_IF_ERROR(file.WriteModel(model));
  ATOLL_ASSIGN_OR_RETURN(const std::string momentum, FinishMomentum(beside, model));
  ATOLL_RETURN_IF_ERROR(file.Publish());
  ReportFile(global, flags, model, momentum);
  return absl::OkStatus();
}

absl::Status ExportToFolder(const GlobalOptions& global, const ExportFlags& flags) {
  const auto partial = PartialFolder::Create(flags.path);
  if (!partial.ok()) {
    return absl::Status(partial.status().code(),
                        absl::StrFormat("--out %s: %s", flags.path, std::string(partial.status().message())));
  }
  ATOLL_ASSIGN_OR_RETURN(std::optional<ExportFile> beside, CreateMomentum(flags));
  TokenizerFiles tokenizer;
  const auto check = [&](const RunOptions& run) {
    ATOLL_RETURN_IF_ERROR(CheckHfExport(run));
    ATOLL_ASSIGN_OR_RETURN(tokenizer, TokenizerForExport(run, flags.hf));
    return absl::OkStatus();
  };
  ATOLL_ASSIGN_OR_RETURN(const PublishedModel model, Get(global, flags.query, check));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                         WriteHfExport((*partial)->partial(), model, std::move(tokenizer), flags.hf));
  ATOLL_ASSIGN_OR_RETURN(const std::string momentum, FinishMomentum(beside, model));
  ATOLL_RETURN_IF_ERROR((*partial)->Publish());
  ReportFolder(global, flags, model, files, momentum);
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
  if (flags.query.outer_state && IsStream(flags.path)) {
    throw CLI::ValidationError("--with-momentum",
                               "needs the name of a file: it makes a second one beside --out");
  }
}

std::vector<CLI::Option*> AddFolderOptions(CLI::App& command, ExportFlags& flags) {
  return {command
              .add_option("--dtype", flags.dtype,
                          "Type of the values in the folder. bf16 and fp16 round to nearest, ties to even")
              ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
              ->capture_default_str(),
          command
              .add_option("--shard-bytes", flags.hf.shard_bytes,
                          "Maximum bytes of tensors in one file of the folder; larger models get several "
                          "files and an index")
              ->check(CLI::Range(int64_t{1}, int64_t{1} << 50))
              ->capture_default_str(),
          command
              .add_option("--tokenizer", flags.hf.tokenizer,
                          "Copy the tokenizer's files of this folder (tokenizer.json, vocab.json, ...)")
              ->check(NotEmpty())};
}

void AddQueryOptions(CLI::App& command, ParametersQuery& query) {
  CLI::Option* const version =
      command
          .add_option("--version", query.version,
                      "Export this version, if it is still stored (checkpoint.keep_versions)")
          ->check(NotNegative());
  command.add_option("--checkpoint", query.checkpoint, "Export this checkpoint; needs an admin's token")
      ->check(NotEmpty())
      ->excludes(version);
  command.add_flag("--with-momentum", query.outer_state,
                   "Also write the outer optimizer's momentum, to OUT.momentum.safetensors");
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
  AddQueryOptions(*command, flags->query);
  const std::vector<CLI::Option*> of_folder = AddFolderOptions(*command, *flags);
  command->callback([&global, &action, flags, out, of_folder] {
    CheckFlags(*flags, *out, of_folder);
    flags->hf.dtype = DtypeOf(flags->dtype);
    action = [&global, flags] {
      return flags->format == kFolder ? ExportToFolder(global, *flags) : ExportToFile(global, *flags);
    };
  });
  SetHelp(
      *command,
      {.examples = {{"atollctl export --out model.safetensors"},
                    {"atollctl export --format hf --out my-gpt2 --dtype bf16 --tokenizer gpt2",
                     "A folder for AutoModelForCausalLM.from_pretrained(\"my-gpt2\")"},
                    {"atollctl export --checkpoint before-lr-change --with-momentum"}},
       .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected, ExitCode::kBadFiles},
       .notes = "Tensors have the names of Hugging Face's GPT2LMHeadModel or LlamaForCausalLM, "
                "or of an external model those that its workers gave them. The command calls the "
                "data port. It calls the admin port with --version, --checkpoint or "
                "--with-momentum, and if only --admin is given."});
}

}  // namespace atl
