#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/confirmation_check.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/file.h"
#include "common/progress_bar.h"
#include "common/standard_output.h"
#include "common/status.h"
#include "core/confirmation.h"
#include "protos/wire/confirmation.h"

namespace atl {
namespace {

// How the coordinator ends its words on a version that no round made (server/admin/verifier.cc).
constexpr char kOnlyCompared[] = "what is stored is what was committed";

const char* VerdictName(v1::VerifyProgress::Verdict verdict) {
  switch (verdict) {
    case v1::VerifyProgress::EQUAL:
      return "equal";
    case v1::VerifyProgress::DIFFERENT:
      return "DIFFERENT";
    case v1::VerifyProgress::NOT_KEPT:
      return "not kept";
    default:
      return "?";
  }
}

/// Collects the verdicts as they arrive.
class Verdicts {
 public:
  explicit Verdicts(bool json) : json_(json) {}

  bool Add(const v1::VerifyProgress& progress) {
    ++counts_[progress.verdict()];
    if (progress.verdict() == v1::VerifyProgress::DIFFERENT) {
      different_.push_back(
          absl::StrFormat("version %d of fragment %d", progress.version(), progress.fragment()));
    }
    if (progress.verdict() == v1::VerifyProgress::EQUAL && progress.message().ends_with(kOnlyCompared)) {
      ++compared_;
    }
    if (json_) return PrintJson(progress, /*compact=*/true).ok() && FlushStandardOutput().ok();
    if (!bar_.has_value()) bar_.emplace(Bar(progress.total()), &clock_, &std::cerr);
    bar_->Update(progress.done());
    rows_.push_back({absl::StrFormat("%d", progress.fragment()), absl::StrFormat("%d", progress.version()),
                     VerdictName(progress.verdict()), absl::StrJoin(progress.confirmed_by(), ","),
                     absl::StrJoin(progress.denied_by(), ","), progress.message()});
    return true;
  }

  void PrintTable() {
    if (bar_.has_value()) bar_->Finish();
    if (json_ || rows_.empty()) return;
    PrintLines(RenderTable({{"fragment", Align::kRight},
                            {"version", Align::kRight},
                            {"verdict"},
                            {"confirmed by"},
                            {"denied by"},
                            {""}},
                           rows_));
  }

  absl::Status Outcome(std::optional<uint64_t> asked) const {
    if (!different_.empty()) {
      return absl::DataLossError(
          absl::StrFormat("the recomputed %s differs from the committed one: stop the coordinator, keep the "
                          "data directory, and check the disk and the memory of its machine",
                          absl::StrJoin(different_, ", ")));
    }
    if (asked.has_value() && Count(v1::VerifyProgress::EQUAL) == 0) {
      return FromCoordinator(absl::NotFoundError(absl::StrFormat(
          "version %d cannot be recomputed: the version, the previous one or the contributions are no longer "
          "kept (checkpoint.keep_versions)",
          *asked)));
    }
    return absl::OkStatus();
  }

  std::string Summary() const {
    const size_t equal = Count(v1::VerifyProgress::EQUAL);
    const size_t gone = Count(v1::VerifyProgress::NOT_KEPT);
    if (equal == 0) return "no retained version can be recomputed (checkpoint.keep_versions)";
    std::string text;
    if (equal > compared_) text = absl::StrFormat("%d recomputed, every bit equal", equal - compared_);
    if (compared_ > 0) {
      text += absl::StrFormat(
          "%s%d not made by a round, such as a restored version: only compared with the stored bytes, every "
          "bit equal",
          text.empty() ? "" : "; ", compared_);
    }
    if (gone > 0)
      text += absl::StrFormat("; %d not recomputed, because their inputs are no longer kept", gone);
    return text;
  }

 private:
  static ProgressOptions Bar(uint32_t total) {
    ProgressOptions options;
    options.label = "verify";
    options.total = total;
    options.style = ErrorStreamStyle();
    return options;
  }
  size_t Count(v1::VerifyProgress::Verdict verdict) const {
    const auto found = counts_.find(verdict);
    return found == counts_.end() ? 0 : found->second;
  }

  const bool json_;
  const SystemClock clock_{};
  std::optional<ProgressBar> bar_;
  std::map<int, size_t> counts_;
  size_t compared_ = 0;  // of the equal ones
  std::vector<std::string> different_;
  std::vector<std::vector<std::string>> rows_;
};

absl::Status Verify(const GlobalOptions& global, std::optional<uint64_t> version) {
  const EndWithReader end_with_reader;
  Verdicts verdicts(global.json);
  const absl::Status streamed = MakeAdminClient(global).Verify(
      version, [&](const v1::VerifyProgress& progress) { return verdicts.Add(progress); });
  verdicts.PrintTable();
  ATOLL_RETURN_IF_ERROR(streamed);
  ATOLL_RETURN_IF_ERROR(verdicts.Outcome(version));
  if (!global.json) std::printf("%s\n", verdicts.Summary().c_str());
  return absl::OkStatus();
}

struct ConfirmationFlags {
  bool wanted = false;
  uint32_t fragment = 0;
  std::vector<std::string> files;
  std::string to;
  std::string peer_keys;
};

absl::StatusOr<ConfirmationFile> FetchConfirmations(const GlobalOptions& global,
                                                    const ConfirmationFlags& flags,
                                                    std::optional<uint64_t> version) {
  v1::ListConfirmationsRequest request;
  request.set_fragment(flags.fragment);
  if (version.has_value()) request.set_first_version(*version);
  if (version.has_value()) request.set_last_version(*version);
  ATOLL_ASSIGN_OR_RETURN(const v1::ConfirmationPage page, MakeAdminClient(global).ListConfirmations(request));
  ConfirmationFile file{.run_id = page.run_id()};
  for (const v1::SignedConfirmation& one : page.confirmations()) {
    file.confirmations.push_back(SignedConfirmationFromProto(one));
  }
  return file;
}

absl::StatusOr<ConfirmationFile> ReadConfirmations(const std::vector<std::string>& files) {
  ConfirmationFile all;
  for (const std::string& name : files) {
    ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
    const auto file = ParseConfirmationFile(text);
    if (!file.ok())
      return absl::InvalidArgumentError(absl::StrFormat("%s: %s", name, file.status().message()));
    ATOLL_RETURN_IF_ERROR(AddConfirmations(*file, all));
  }
  return all;
}

absl::Status VerifyConfirmations(const GlobalOptions& global, const ConfirmationFlags& flags,
                                 std::optional<uint64_t> version) {
  PeerKeys pinned;
  if (!flags.peer_keys.empty()) {
    ATOLL_ASSIGN_OR_RETURN(pinned, ReadPeerKeys(flags.peer_keys));
  }
  auto file =
      flags.files.empty() ? FetchConfirmations(global, flags, version) : ReadConfirmations(flags.files);
  ATOLL_RETURN_IF_ERROR(file.status());
  if (!flags.to.empty()) {
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(flags.to, ConfirmationFileToJson(*file) + "\n", 0644));
  }
  const ConfirmationReport report = CheckConfirmations(*file, pinned);
  if (global.json) {
    std::printf("%s\n", ConfirmationFileToJson(*file).c_str());
  } else {
    PrintLines(RenderTable(
        {{"fragment", Align::kRight}, {"version", Align::kRight}, {"hash"}, {"signed by"}, {"not counted"}},
        report.rows));
  }
  if (!report.problems.empty()) {
    return WithExitCode(absl::DataLossError(absl::StrJoin(report.problems, "; ")), ExitCode::kUntrusted);
  }
  if (!global.json) {
    std::printf(
        "%zu signatures are good; all workers signed the same hashes\n"
        "A worker signs a version when it pushes a contribution based on it, so nobody signs a run's last "
        "version;\n"
        "`atollctl verify` recomputes it\n",
        report.good);
  }
  return absl::OkStatus();
}

void AddConfirmationOptions(CLI::App& command, ConfirmationFlags& flags) {
  CLI::Option* const confirmations = command.add_flag(
      "--confirmations", flags.wanted,
      "Check the workers' signatures under published hashes instead; exit with 9 when one is forged, or "
      "when workers signed different hashes");
  command.add_option("--fragment", flags.fragment, "With --confirmations: check only this fragment")
      ->needs(confirmations)
      ->capture_default_str();
  command
      .add_option("--file", flags.files,
                  "With --confirmations: read this export instead of asking the coordinator; repeat the "
                  "option to compare exports from several machines")
      ->needs(confirmations);
  command
      .add_option("--export", flags.to,
                  "With --confirmations: write the checked confirmations to this file, as JSON")
      ->needs(confirmations);
  command
      .add_option("--peer-keys", flags.peer_keys,
                  "With --confirmations: count only the workers in this file, and only with these keys")
      ->needs(confirmations);
}

}  // namespace

void AddVerifyCommand(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = app.add_subcommand("verify",
                                         "Recompute retained versions from their contributions and compare "
                                         "every bit; exit with 4 on a difference");
  auto version = std::make_shared<std::optional<uint64_t>>();
  command->add_option("--version", *version, "Verify only this version; default: all that can be recomputed")
      ->check(NotNegative());
  auto flags = std::make_shared<ConfirmationFlags>();
  AddConfirmationOptions(*command, *flags);
  command->callback([&global, &action, version, flags] {
    action = [&global, version, flags] {
      return flags->wanted ? VerifyConfirmations(global, *flags, *version) : Verify(global, *version);
    };
  });
  SetHelp(*command, {.examples = {{"atollctl verify"},
                                  {"atollctl verify --version 41"},
                                  {"atollctl verify --confirmations", "Check the workers' signatures"}},
                     .exit_codes = {ExitCode::kUnavailable, ExitCode::kStorage, ExitCode::kRejected,
                                    ExitCode::kBadFiles, ExitCode::kUntrusted}});
}

}  // namespace atl
