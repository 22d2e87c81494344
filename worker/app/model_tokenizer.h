#ifndef ATOLL_WORKER_APP_MODEL_TOKENIZER_H_
#define ATOLL_WORKER_APP_MODEL_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// Where the tokenizer of a model may be.
struct TokenizerSource {
  std::string name = {};     // that the caller gave: a known name or a file; empty: none
  std::string pattern = {};  // of a file that does not name its own
  std::string of_run = {};   // as the run's configuration names it; empty: not known
  std::string files =
      {};  // of the model, which may have the tokenizer beside them; empty: from a coordinator
};

/// The tokenizer that the caller names, or the run's, or the one beside the weights of an exported model.
/// FailedPrecondition says why there is none; the caller adds what needs it and what to do. Others: the file
/// cannot be used.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfModel(const TokenizerSource& source);

/// InvalidArgument if the run, whose configuration names `of_run`, was trained with another one. What a
/// worker scores with it would be published among the run's numbers. OK where of_run is not known.
absl::Status CheckTokenizerOfRun(const Tokenizer& tokenizer, const std::string& of_run);

/// Logs a warning if the run was trained with another one, or the model has another one beside its weights.
void WarnOfOtherTokenizer(const Tokenizer& tokenizer, const TokenizerSource& of_model, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_MODEL_TOKENIZER_H_
