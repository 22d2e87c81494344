#include "worker/app/model_tokenizer.h"

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "core/tokenizer_names.h"
#include "storage/weights/model_files.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfModel(const TokenizerSource& source) {
  const std::string& name = source.name.empty() ? source.of_run : source.name;
  if (auto own = MakeTokenizer(name); own.ok()) return own;
  if (!source.name.empty()) {
    if (FileExists(name)) return MakeFileTokenizer(name, source.pattern);
    return absl::FailedPreconditionError(absl::StrFormat(
        "--tokenizer: there is no file '%s', and the only tokenizer without a file is 'bytes'", name));
  }
  if (IsModelFolder(source.files)) {
    auto beside = MakeFileTokenizer(source.files, source.pattern);
    if (beside.ok() || !absl::IsNotFound(beside.status())) return beside;
  }
  return absl::FailedPreconditionError(
      name.empty() || name == kNoTokenizer
          ? "nothing says which tokenizer the model has"
          : absl::StrFormat("the run's tokenizer is '%s', whose file is not here", name));
}

absl::Status CheckTokenizerOfRun(const Tokenizer& tokenizer, const std::string& of_run) {
  if (of_run.empty() || of_run == kNoTokenizer || tokenizer.name() == of_run) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "--tokenizer: the run's data has the tokens of '%s', and this tokenizer is '%s', so the "
      "scores would mean nothing; name the files of '%s'",
      of_run, std::string(tokenizer.name()), of_run));
}

void WarnOfOtherTokenizer(const Tokenizer& tokenizer, const TokenizerSource& of_model, const Logger& log) {
  std::string whose = "the run's tokenizer", other = of_model.of_run;
  if (other.empty() && IsModelFolder(of_model.files)) {
    if (const auto beside = MakeFileTokenizer(of_model.files, of_model.pattern); beside.ok()) {
      whose = absl::StrFormat("the tokenizer in %s", of_model.files);
      other = std::string((*beside)->name());
    }
  }
  if (other.empty() || other == kNoTokenizer || tokenizer.name() == other) return;
  log.Warning(
      absl::StrFormat("%s is '%s', and this one is '%s': the text means something only if "
                      "both make the same tokens",
                      whose, other, std::string(tokenizer.name())));
}

}  // namespace atl
