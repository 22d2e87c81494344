#include "worker/data/tokenize/tokenize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/human.h"
#include "common/status.h"
#include "core/token_format.h"
#include "worker/data/dataset_writer.h"
#include "worker/data/input/input_list.h"
#include "worker/data/output_folder.h"
#include "worker/data/tokenize/document_spool.h"
#include "worker/data/tokenize/fill_spool.h"
#include "worker/data/tokenize/journal.h"

namespace atl {
namespace {

using By = ValidationChoice::By;

absl::Status CheckOptions(const TokenizeOptions& options) {
  const double share = options.validation.share;
  if (options.validation.by != By::kFiles && !(share > 0 && share < 1)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the held-out share is %g; it must be above 0 and below 1", share));
  }
  if (options.threads < 1) return absl::InvalidArgumentError("threads: expected at least 1");
  if (options.tokens_per_file < 1 || options.tokens_per_file > kMaxTokensPerFile) {
    return absl::InvalidArgumentError(absl::StrFormat("tokens of a file: %d; expected 1 to %d",
                                                      options.tokens_per_file, kMaxTokensPerFile));
  }
  return absl::OkStatus();
}

/// The training files, then the held-out ones. A held-out file that also belongs to a folder or a pattern of
/// the inputs is only held out.
absl::StatusOr<TextInputs> FindInputs(const TokenizeOptions& options) {
  TextInputs inputs;
  ATOLL_ASSIGN_OR_RETURN(inputs.files, ListInputs(options.inputs));
  inputs.trained = inputs.files.size();
  if (options.validation.by != By::kFiles) return inputs;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<InputFile> held_out, ListInputs(options.validation.files));
  std::set<std::string> names;
  const auto normal = [](const InputFile& file) {
    return std::filesystem::path(file.path).lexically_normal().string();
  };
  for (const InputFile& file : held_out) names.insert(normal(file));
  std::erase_if(inputs.files, [&](const InputFile& file) { return names.contains(normal(file)); });
  if (inputs.files.empty()) {
    return absl::InvalidArgumentError("all files are held out; name others to train on");
  }
  inputs.trained = inputs.files.size();
  inputs.files.insert(inputs.files.end(), held_out.begin(), held_out.end());
  return inputs;
}

/// Of everything that decides the tokens and the documents, except the inputs themselves.
std::string JobDigest(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const auto number = [](const auto& value) { return value ? absl::StrCat(*value) : std::string("none"); };
  return Sha256Hex(absl::StrCat(
      std::string(tokenizer.name()), " ", tokenizer.vocabulary(), " ", number(tokenizer.end_of_text()), "\n",
      static_cast<int>(options.format), " ", options.any_text ? 1 : 0, " ", options.field, "\n",
      number(options.shuffle_seed), "\n",
      options.validation.by == By::kHash ? absl::StrCat(options.validation.share) : std::string("-"), "\n"));
}

/// Where to begin: behind what an earlier call has recorded, if it was about the same.
Journal FindStart(const std::string& folder, const std::string& job, const TextInputs& inputs,
                  const TokenizeEvents& events) {
  Journal fresh{.job = job};
  const absl::StatusOr<Journal> found = ReadJournal(folder);
  if (!found.ok()) return fresh;
  const bool same = found->job == job && found->inputs <= inputs.files.size() &&
                    found->inputs_digest == inputs.Digest(found->inputs);
  if (events.notice) {
    events.notice(same
                      ? absl::StrFormat("continuing in %s: %d of %d input(s) are done", folder, found->inputs,
                                        inputs.files.size())
                      : absl::StrFormat("starting again: %s was begun with other options or inputs", folder));
  }
  return same ? *found : fresh;
}

absl::Status TooFewTokens(uint64_t tokens, uint64_t skipped_lines, const TokenizeOptions& options) {
  std::string text = absl::StrFormat("the text has %d tokens: too few to train on and to hold out %g of",
                                     tokens, options.validation.share);
  if (skipped_lines > 0) {
    absl::StrAppend(&text, "; ", Counted(skipped_lines, "bad line"),
                    " were left out: without --skip-bad-lines the first of them is shown");
  }
  return absl::InvalidArgumentError(text);
}

/// The remedy if one side has no text.
std::string SideRemedy(const TokenizeOptions& options, const DocumentSpool& spool) {
  if (options.validation.by == By::kFiles) return "the files of one side have no text; name others";
  return absl::StrFormat("of %s by their hash with the share %g; change the share, or use share:%g",
                         Counted(spool.state().documents, "document"), options.validation.share,
                         options.validation.share);
}

absl::StatusOr<DatasetDescription> WriteDataset(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                                const TokenizeEvents& events, const std::string& folder,
                                                const DocumentSpool& spool, uint64_t skipped_lines) {
  const uint64_t all = spool.state().tokens;
  uint64_t trained = all;  // of kShare
  if (options.validation.by == By::kShare) {
    const auto held_out =
        static_cast<uint64_t>(std::ceil(static_cast<double>(all) * options.validation.share));
    if (all < 4 || held_out + 2 > all) return TooFewTokens(all, skipped_lines, options);
    trained = all - held_out;
  }
  DatasetWriter writer({.folder = folder,
                        .tokenizer = std::string(tokenizer.name()),
                        .vocabulary = tokenizer.vocabulary(),
                        .end_of_text = tokenizer.end_of_text(),
                        .tokens_per_file = options.tokens_per_file});
  uint64_t done = 0;
  const auto write = [&](std::span<const TokenId> tokens, bool held_out) -> absl::Status {
    const uint64_t left = held_out ? 0 : std::min<uint64_t>(tokens.size(), trained - std::min(done, trained));
    ATOLL_RETURN_IF_ERROR(writer.AddTrain(tokens.first(left)));
    ATOLL_RETURN_IF_ERROR(writer.AddHeldOut(tokens.subspan(left)));
    done += tokens.size();
    if (events.write) events.write(done, all);
    return absl::OkStatus();
  };
  ATOLL_RETURN_IF_ERROR(spool.Read(write));
  absl::StatusOr<DatasetDescription> description = writer.Finish();
  if (absl::IsInvalidArgument(description.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(description.status().message()), ": ", SideRemedy(options, spool)));
  }
  return description;
}

/// What an earlier process left: half of a dataset, and if this call starts again, everything.
absl::Status RemoveLeftOver(const std::string& folder, bool again) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  for (const std::string& name : names) {
    // Hidden: the folder's own mark.
    const bool dataset =
        name.starts_with("train_") || name.starts_with("val.bin") || name.starts_with("meta.json");
    if (dataset || (again && !name.starts_with('.'))) {
      ATOLL_RETURN_IF_ERROR(RemoveFile(JoinPath(folder, name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizeResult> Tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                        const Clock& clock, const TokenizeEvents& events) {
  ATOLL_RETURN_IF_ERROR(CheckOptions(options));
  ATOLL_ASSIGN_OR_RETURN(const TextInputs inputs, FindInputs(options));
  ATOLL_ASSIGN_OR_RETURN(OutputFolder folder,
                         OutputFolder::Create(options.folder, PartialFolder::LeftOver::kContinue));
  Journal journal = FindStart(folder.partial(), JobDigest(tokenizer, options), inputs, events);
  ATOLL_RETURN_IF_ERROR(RemoveLeftOver(folder.partial(), journal.inputs == 0));
  const auto keep = [&](const absl::Status& status) {
    if (status.ok() || journal.inputs == 0) return status;
    folder.Keep();
    return absl::Status(status.code(),
                        absl::StrFormat("%s\n%d of %d input(s) are done; the same command continues",
                                        std::string(status.message()), journal.inputs, inputs.files.size()));
  };
  ATOLL_ASSIGN_OR_RETURN(DocumentSpool spool, DocumentSpool::Open({.folder = folder.partial(),
                                                                   .width = WidthFor(tokenizer.vocabulary()),
                                                                   .shuffle_seed = options.shuffle_seed},
                                                                  journal.spool));
  ATOLL_RETURN_IF_ERROR(
      keep(FillSpool(tokenizer, options, inputs, folder.partial(), clock, events, journal, spool)));
  const absl::StatusOr<DatasetDescription> description =
      WriteDataset(tokenizer, options, events, folder.partial(), spool, journal.skipped_lines);
  // A full disk can be tried again; a text that is too short cannot.
  if (absl::IsInvalidArgument(description.status())) return description.status();
  if (!description.ok()) return keep(description.status());
  TokenizeResult result{.description = *description,
                        .inputs = inputs.files.size(),
                        .documents = spool.state().documents,
                        .skipped_lines = journal.skipped_lines};
  ATOLL_RETURN_IF_ERROR(spool.Remove());
  ATOLL_RETURN_IF_ERROR(RemoveJournal(folder.partial()));
  ATOLL_RETURN_IF_ERROR(folder.Publish());
  return result;
}

}  // namespace atl
