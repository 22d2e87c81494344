#ifndef ATOLL_WORKER_DATA_TOKENIZE_H_
#define ATOLL_WORKER_DATA_TOKENIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset_description.h"
#include "worker/data/tokenizer.h"

namespace atl {

struct TokenizeOptions {
  std::vector<std::string> inputs;    // text files in order, plain or gzip; "-" is the standard input
  std::string folder;                 // made when it is not there, removed again when the call fails
  double validation_fraction = 0.05;  // the LAST part of the text is held out; in (0, 1)
  uint64_t tokens_per_file = uint64_t{1} << 28;
};

/// Bytes of input read so far, and of all inputs (0: not known).
using TokenizeProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Tokenises the inputs, one after the other, into a dataset folder (worker/data/dataset.h). The description
/// is written last, so a folder with meta.json is complete. Memory is bounded; the tokens pass through a
/// temporary file in the folder. Errors name the file; AlreadyExists when the folder already holds a
/// dataset or other files; FailedPrecondition when another call writes into it; InvalidArgument when the text
/// is too short to split.
absl::StatusOr<DatasetDescription> Tokenize(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                            const TokenizeProgress& progress);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_H_
