#ifndef ATOLL_WORKER_DATA_TOKENIZE_TOKENIZE_H_
#define ATOLL_WORKER_DATA_TOKENIZE_TOKENIZE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "worker/data/dataset_description.h"
#include "worker/data/input/text_batch.h"
#include "worker/data/tokenize/validation_choice.h"
#include "worker/data/tokenizer.h"

namespace atl {

struct TokenizeOptions {
  std::vector<std::string> inputs;  // files, folders and patterns (ListInputs); "-" is the standard input
  std::string folder;               // the dataset; it appears when it is complete
  TextFormat format = TextFormat::kText;
  std::string field = {};  // of JSON lines: the name of the string to train on
  bool any_text = false;   // accept plain text that looks like JSON lines
  bool skip_bad_lines = false;
  uint32_t threads = 1;  // that encode; the result does not depend on it
  ValidationChoice validation = {};
  std::optional<uint64_t> shuffle_seed = {};
  uint64_t tokens_per_file = uint64_t{1} << 28;
};

/// What is told during the work; each may be empty.
struct TokenizeEvents {
  std::function<void(uint64_t done, uint64_t total)> read = {};   // bytes of input; total 0: not known
  std::function<void(uint64_t done, uint64_t total)> write = {};  // tokens, after all input is read
  std::function<void(const std::string& line)> notice = {};
};

/// Lists skipped lines in the dataset folder: file, line and reason, with tabs between them.
inline constexpr char kSkippedLines[] = "skipped_lines.txt";

struct TokenizeResult {
  DatasetDescription description;
  uint64_t inputs = 0;
  uint64_t documents = 0;
  uint64_t skipped_lines = 0;
};

/// Tokenises the inputs into a dataset folder (worker/data/dataset.h). Each file, or each line of JSON, is a
/// document.
///
/// Works in the folder FOLDER.partial, and renames it when it is complete. If the process is killed or fails
/// after some inputs, the same call continues behind the last input that was recorded, with the same result;
/// a call for other tokens starts again. Memory is bounded. The disk needs twice the space of the tokens.
///
/// Errors name the file and the line. AlreadyExists when the folder holds a dataset or other files;
/// FailedPrecondition when another call writes it; InvalidArgument for bad text, and for a text that is too
/// short to hold a part out.
absl::StatusOr<TokenizeResult> Tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                        const Clock& clock, const TokenizeEvents& events);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_TOKENIZE_H_
