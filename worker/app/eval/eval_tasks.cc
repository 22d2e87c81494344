#include "worker/app/eval/eval_tasks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/setup/setup_error.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/progress_bar.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "worker/app/eval/choice_task.h"
#include "worker/app/eval/is_folder.h"
#include "worker/app/eval/text_loss.h"
#include "worker/app/model_tokenizer.h"
#include "worker/data/dataset.h"
#include "worker/data/token_file.h"

namespace atl {
namespace {

Scorer ScorerOf(const LoadedModel& model) {
  return {.context = model.options.context(), .score = [&model](std::span<const ScoreRequest> requests) {
            return model.replica->Score(requests, {});
          }};
}

/// The held-out tokens of a folder, or all of a file.
struct OpenTokens {
  std::optional<Dataset> folder;
  std::optional<TokenFile> file;
  uint64_t size() const { return folder ? folder->validation_tokens() : file->size(); }
  absl::Status Read(uint64_t first, std::span<TokenId> out) const {
    return folder ? folder->ReadValidation(first, out) : file->Read(first, out);
  }
};

class ModelJudge {
 public:
  ModelJudge(std::string name, const LoadedModel& model, absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer,
             const EvalFlags& flags)
      : name_(std::move(name)),
        model_(model),
        tokenizer_(std::move(tokenizer)),
        flags_(flags),
        scorer_(ScorerOf(model)) {}

  absl::StatusOr<TaskResult> Data(const std::string& path);
  absl::StatusOr<TaskResult> Text(const TextInput& input);
  absl::StatusOr<TaskResult> Choices(const ChoiceInput& input);

 private:
  absl::StatusOr<const Tokenizer*> NeedTokenizer(const std::string& file) const;
  absl::StatusOr<OpenTokens> Open(const std::string& path) const;
  absl::StatusOr<TextLoss> Loss(const std::string& file, const TokenText& text,
                                const std::function<void(std::span<const TokenId>)>& visit) const;
  ProgressOptions BarOptions(const std::string& file, uint64_t total) const {
    return {.label = absl::StrCat(name_, ", ", file), .total = total, .style = flags_.progress};
  }
  TaskResult LossResult(const char* task, const std::string& file, const TextLoss& loss,
                        std::optional<uint64_t> bytes) const;

  const std::string name_;
  const LoadedModel& model_;
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_;
  const EvalFlags& flags_;
  const Scorer scorer_;
  const SystemClock clock_{};
};

absl::StatusOr<const Tokenizer*> ModelJudge::NeedTokenizer(const std::string& file) const {
  if (tokenizer_.ok()) return tokenizer_->get();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s, so the text of %s cannot be turned into tokens: name the tokenizer's file or "
                      "folder (--tokenizer "
                      "gpt2/tokenizer.json)",
                      name_, std::string(tokenizer_.status().message()), file));
}

absl::StatusOr<OpenTokens> ModelJudge::Open(const std::string& path) const {
  OpenTokens tokens;
  if (!IsFolder(path)) {
    ATOLL_ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(path, model_.options.vocabulary()));
    tokens.file.emplace(std::move(file));
    return tokens;
  }
  // A short text is measured too.
  ATOLL_ASSIGN_OR_RETURN(Dataset folder,
                         Dataset::Open(path, {.vocabulary = model_.options.vocabulary(),
                                              .context = 1,
                                              .tokenizer = model_.tokenizer,
                                              .section = ShapeOf(model_.options)->section()}));
  // Scores of tokens that mean other text are numbers like any others.
  const std::string& made_by = folder.description().tokenizer;
  if (tokenizer_.ok() && (*tokenizer_)->name() != made_by) {
    return WithExitCode(
        absl::InvalidArgumentError(absl::StrFormat(
            "%s: its tokens are those of the tokenizer '%s', and %s is measured with '%s'; tokenize the text "
            "with that tokenizer, or name the files of '%s' with --tokenizer if the model was trained with "
            "it",
            path, made_by, name_, std::string((*tokenizer_)->name()), made_by)),
        ExitCode::kBadFiles);
  }
  tokens.folder.emplace(std::move(folder));
  return tokens;
}

absl::StatusOr<TextLoss> ModelJudge::Loss(const std::string& file, const TokenText& text,
                                          const std::function<void(std::span<const TokenId>)>& visit) const {
  if (text.tokens < 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: holds %d tokens; a loss needs one that follows another", file, text.tokens));
  }
  const uint32_t context = scorer_.context;
  if (flags_.stride > context) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--stride %d: %s sees %d tokens at once", flags_.stride, name_, context));
  }
  ProgressBar bar(BarOptions(file, text.tokens - 1), &clock_, &std::cerr);
  auto loss = MeasureText(text, flags_.stride > 0 ? flags_.stride : context, scorer_, visit,
                          [&](uint64_t done) { bar.Update(done); });
  if (loss.ok()) bar.Finish();
  if (loss.ok() || !absl::IsInvalidArgument(loss.status())) return loss;
  return absl::InvalidArgumentError(absl::StrFormat("%s, %s: %s; is it of another tokenizer?", name_, file,
                                                    std::string(loss.status().message())));
}

TaskResult ModelJudge::LossResult(const char* task, const std::string& file, const TextLoss& loss,
                                  std::optional<uint64_t> bytes) const {
  TaskResult result = {.task = task, .file = file, .unit = "tokens", .count = loss.tokens};
  Measure per_byte = {.key = "bits_per_byte", .label = "bits per byte"};
  if (bytes && *bytes > 0) per_byte.value = loss.total / std::numbers::ln2 / static_cast<double>(*bytes);
  result.measures = {{.key = "loss", .label = "loss", .value = loss.mean()},
                     {.key = "perplexity", .label = "perplexity", .value = std::exp(loss.mean())},
                     per_byte};
  return result;
}

absl::StatusOr<TaskResult> ModelJudge::Data(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const OpenTokens tokens, Open(path));
  const uint64_t count =
      flags_.limit_tokens > 0 ? std::min(tokens.size(), flags_.limit_tokens) : tokens.size();
  const TokenText text = {.tokens = count, .read = [&](uint64_t first, std::span<TokenId> out) {
                            return tokens.Read(first, out);
                          }};
  std::unique_ptr<Tokenizer> of_data;
  const Tokenizer* tokenizer = tokenizer_.ok() ? tokenizer_->get() : nullptr;
  if (tokenizer == nullptr && tokens.folder) {
    if (auto named = MakeTokenizer(tokens.folder->description().tokenizer); named.ok()) {
      of_data = *std::move(named);
      tokenizer = of_data.get();
    }
  }
  std::optional<TextBytes> bytes;
  if (tokenizer != nullptr) bytes.emplace(*tokenizer, model_.endings);
  ATOLL_ASSIGN_OR_RETURN(const TextLoss loss, Loss(path, text, [&](std::span<const TokenId> scored) {
                           if (bytes) bytes->Add(scored);
                         }));
  TaskResult result = LossResult("data", path, loss, bytes ? std::optional(bytes->bytes()) : std::nullopt);
  if (!bytes) {
    result.notes.push_back(
        absl::StrFormat("%s: bits per byte are unknown for %s, because %s: give --tokenizer", name_, path,
                        std::string(tokenizer_.status().message())));
  }
  return result;
}

absl::StatusOr<TaskResult> ModelJudge::Text(const TextInput& input) {
  ATOLL_ASSIGN_OR_RETURN(const Tokenizer* const tokenizer, NeedTokenizer(input.file));
  std::vector<TokenId> tokens;
  tokenizer->Encode(input.text, tokens);
  std::optional<TokenId> begin = flags_.begin_token;
  if (!begin) begin = model_.begin;
  if (!begin && !model_.endings.empty()) begin = model_.endings.front();
  if (begin) tokens.insert(tokens.begin(), *begin);
  const bool whole = flags_.limit_tokens == 0 || tokens.size() <= flags_.limit_tokens;
  if (!whole) tokens.resize(flags_.limit_tokens);
  const TokenText text = {.tokens = tokens.size(), .read = [&](uint64_t first, std::span<TokenId> out) {
                            std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(first), out.size(),
                                        out.begin());
                            return absl::OkStatus();
                          }};
  ATOLL_ASSIGN_OR_RETURN(const TextLoss loss, Loss(input.file, text, nullptr));
  TextBytes bytes(*tokenizer, {});
  if (!begin) bytes.Add(std::span(tokens).first(1));
  uint64_t counted = input.text.size() - std::min<uint64_t>(input.text.size(), bytes.bytes());
  if (!whole) {
    TextBytes part(*tokenizer, {});
    part.Add(std::span(tokens).subspan(1));
    counted = part.bytes();
  }
  TaskResult result = LossResult("text", input.file, loss, counted);
  if (!begin) {
    result.notes.push_back(absl::StrFormat(
        "%s: the first token of a text has no score, because nothing names a token that begins "
        "a text (--begin-token)",
        name_));
  }
  return result;
}

absl::StatusOr<TaskResult> ModelJudge::Choices(const ChoiceInput& input) {
  ChoiceInput in_tokens = input;
  const Tokenizer* tokenizer = nullptr;
  if (NeedsTokenizer(input)) {
    ATOLL_ASSIGN_OR_RETURN(tokenizer, NeedTokenizer(input.file));
  }
  TurnIntoTokens(tokenizer, flags_.begin_token, in_tokens);
  std::optional<ProgressBar> bar;
  size_t at = 0;
  // A bar counts the seconds from its creation on.
  const auto begin_part = [&] {
    bar.reset();
    if (at == in_tokens.parts.size()) return;
    const ChoicePart& part = in_tokens.parts[at];
    bar.emplace(BarOptions(input.file + part.of, part.tokens.size()), &clock_, &std::cerr);
  };
  begin_part();
  auto result = ScoreChoiceInput(in_tokens, scorer_, [&](const ChoicePart& part, uint64_t done) {
    if (!bar) return;
    bar->Update(done);
    if (done < part.tokens.size()) return;
    bar->Finish();
    ++at;
    begin_part();
  });
  if (result.ok()) return result;
  return absl::Status(result.status().code(), absl::StrFormat("%s, %s: %s", name_, input.file,
                                                              std::string(result.status().message())));
}

}  // namespace

absl::StatusOr<ModelResult> MeasureModel(const std::string& name, const ModelSource& source,
                                         const EvalFlags& flags, const EvalInputs& inputs,
                                         const Logger& log) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer;
  const auto find_tokenizer = [&](const std::string& of_run) {
    tokenizer = TokenizerOfModel({.name = flags.tokenizer,
                                  .pattern = flags.tokenizer_pattern,
                                  .of_run = of_run,
                                  .files = source.files});
    if (tokenizer.ok()) WarnOfOtherTokenizer(**tokenizer, {.of_run = of_run, .files = source.files}, log);
    // A named one that cannot be used is an error; another one may not be needed.
    return tokenizer.ok() || flags.tokenizer.empty() ? absl::OkStatus() : tokenizer.status();
  };
  ATOLL_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(source, find_tokenizer, log));
  ModelJudge judge(name, model, std::move(tokenizer), flags);
  ModelResult result = {.model = name};
  const auto keep = [&](absl::StatusOr<TaskResult> task) {
    if (!task.ok()) return task.status();
    result.tasks.push_back(*std::move(task));
    return absl::OkStatus();
  };
  for (const std::string& path : flags.data) ATOLL_RETURN_IF_ERROR(keep(judge.Data(path)));
  for (const TextInput& input : inputs.texts) ATOLL_RETURN_IF_ERROR(keep(judge.Text(input)));
  for (const ChoiceInput& input : inputs.choices) ATOLL_RETURN_IF_ERROR(keep(judge.Choices(input)));
  return result;
}

}  // namespace atl
