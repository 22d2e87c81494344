#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/confirm.h"
#include "cli/json.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

std::string Size(const v1::CheckpointInfo& checkpoint) {
  std::string text = HumanBytes(checkpoint.bytes());
  if (checkpoint.shared_bytes() > 0) text += ", " + HumanBytes(checkpoint.shared_bytes()) + " shared";
  return text;
}

std::vector<std::string> Row(const v1::CheckpointInfo& checkpoint, bool checked) {
  const std::string state = !checkpoint.damage().empty() ? "DAMAGED: " + checkpoint.damage()
                            : checked                    ? "whole"
                                                         : "-";
  return {checkpoint.name(),
          absl::StrJoin(checkpoint.versions(), ","),
          HumanCount(static_cast<double>(checkpoint.committed_tokens())),
          LocalTime(checkpoint.created_unix_nanos()),
          checkpoint.automatic() ? "automatic" : "by hand",
          Size(checkpoint),
          state};
}

absl::Status Create(const GlobalOptions& global, const std::string& name) {
  ATOLL_ASSIGN_OR_RETURN(const v1::CreateCheckpointReply reply,
                         MakeAdminClient(global).CreateCheckpoint(name));
  if (global.json) return PrintJson(reply);
  const v1::CheckpointInfo& made = reply.checkpoint();
  std::printf("made %s: version %s, %s, in %s\n", Printable(made.name()).c_str(),
              absl::StrJoin(made.versions(), ",").c_str(), Size(made).c_str(),
              Printable(made.path()).c_str());
  return absl::OkStatus();
}

absl::Status List(const GlobalOptions& global, bool check) {
  ATOLL_ASSIGN_OR_RETURN(const v1::ListCheckpointsReply reply,
                         MakeAdminClient(global).ListCheckpoints(check));
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> damaged;
  for (const v1::CheckpointInfo& checkpoint : reply.checkpoints()) {
    rows.push_back(Row(checkpoint, check));
    if (!checkpoint.damage().empty()) damaged.push_back(checkpoint.name());
  }
  if (global.json) {
    ATOLL_RETURN_IF_ERROR(PrintJson(reply));
  } else if (rows.empty()) {
    std::printf("no checkpoints; 'atollctl checkpoint create' creates one\n");
  } else {
    PrintLines(RenderTable({{"name"},
                            {"version", Align::kRight},
                            {"tokens", Align::kRight},
                            {"made"},
                            {"kind"},
                            {"size"},
                            {"state"}},
                           rows));
  }
  if (damaged.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("damaged checkpoints: %s; delete them and create new ones",
                                             absl::StrJoin(damaged, ", ")));
}

/// The workers of a finished run have exited. Those of a live run stay members and rejoin by themselves.
void SayIfNobodyTrains(AdminClient& client) {
  const absl::StatusOr<v1::GetStatusReply> status = client.GetStatus(0);
  if (!status.ok() || status->live_trainers() > 0) return;
  std::printf(
      "no worker is in the run: start your workers again (a launcher does it by itself); until they join, "
      "the "
      "run is '%s'\n",
      StateName(status->state()));
}

absl::Status Restore(const GlobalOptions& global, const std::string& name, bool yes) {
  ATOLL_RETURN_IF_ERROR(
      Confirm(absl::StrFormat("Restore checkpoint '%s'? Its contents become the next version in a new epoch, "
                              "and all training since then is discarded.",
                              name),
              yes));
  AdminClient client = MakeAdminClient(global);
  ATOLL_ASSIGN_OR_RETURN(const v1::RestoreCheckpointReply reply, client.RestoreCheckpoint(name));
  if (global.json) return PrintJson(reply);
  std::printf("restored %s as version %s in epoch %016llx, at %s tokens\n", name.c_str(),
              absl::StrJoin(reply.versions(), ",").c_str(), static_cast<unsigned long long>(reply.epoch()),
              HumanCount(static_cast<double>(reply.committed_tokens())).c_str());
  SayIfNobodyTrains(client);
  return absl::OkStatus();
}

absl::Status Delete(const GlobalOptions& global, const std::string& name, bool yes) {
  ATOLL_RETURN_IF_ERROR(Confirm(absl::StrFormat("Delete checkpoint '%s'?", name), yes));
  ATOLL_RETURN_IF_ERROR(MakeAdminClient(global).DeleteCheckpoint(name));
  if (global.json) return PrintJson(v1::DeleteCheckpointReply());
  std::printf("deleted %s\n", name.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCheckpointCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* checkpoint =
      app.add_subcommand("checkpoint", "Create, list, check, restore or delete checkpoints");
  checkpoint->require_subcommand(1);
  struct Options {
    std::string name;
    bool check = false;
    bool yes = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* create =
      checkpoint->add_subcommand("create", "Create a checkpoint now; rounds continue meanwhile");
  create->add_option("NAME", options->name, "Name of the checkpoint; default: made of version and time")
      ->check([](const std::string& name) {
        return name.empty() ? "is empty; omit it to get a name made of version and time" : "";
      });
  create->callback(
      [&global, &action, options] { action = [&global, options] { return Create(global, options->name); }; });
  CLI::App* list = checkpoint->add_subcommand("list", "List the checkpoints");
  list->add_flag("--check", options->check,
                 "Read every file and compare its checksum; exit with 4 on damage");
  list->callback(
      [&global, &action, options] { action = [&global, options] { return List(global, options->check); }; });
  CLI::App* restore = checkpoint->add_subcommand(
      "restore",
      "Restore a checkpoint: its contents become the next version, in a new epoch. Training "
      "since then is discarded, so the command asks first");
  restore->add_option("NAME", options->name, "Name of the checkpoint")->required();
  restore->add_flag("--yes", options->yes,
                    "Do not ask for confirmation; required when no terminal can answer");
  restore->callback([&global, &action, options] {
    action = [&global, options] { return Restore(global, options->name, options->yes); };
  });
  CLI::App* remove = checkpoint->add_subcommand("delete", "Delete a checkpoint; the command asks first");
  remove->add_option("NAME", options->name, "Name of the checkpoint")->required();
  remove->add_flag("--yes", options->yes,
                   "Do not ask for confirmation; required when no terminal can answer");
  remove->callback([&global, &action, options] {
    action = [&global, options] { return Delete(global, options->name, options->yes); };
  });
  const std::vector<ExitCode> plain = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected};
  std::vector<ExitCode> asking = plain;
  asking.push_back(ExitCode::kInterrupted);
  SetHelp(*create, {.examples = {{"atollctl checkpoint create before-lr-change"}}, .exit_codes = plain});
  SetHelp(*list, {.examples = {{"atollctl checkpoint list --check"}}, .exit_codes = plain});
  SetHelp(*restore, {.examples = {{"atollctl checkpoint restore before-lr-change --yes",
                                   "In a script; on a terminal, leave --yes out to be asked"}},
                     .exit_codes = asking});
  SetHelp(*remove,
          {.examples = {{"atollctl checkpoint delete before-lr-change --yes"}}, .exit_codes = asking});
  SetHelp(*checkpoint, {.examples = {{"atollctl checkpoint create before-lr-change"},
                                     {"atollctl checkpoint list --check"}},
                        .exit_codes = asking});
}

}  // namespace atl
