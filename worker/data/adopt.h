#ifndef ATOLL_WORKER_DATA_ADOPT_H_
#define ATOLL_WORKER_DATA_ADOPT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "worker/data/dataset_description.h"

namespace atl {

struct AdoptOptions {
  std::string folder;
  std::string tokenizer;                    // what the run's data.tokenizer says
  uint32_t vocabulary = 0;                  // of the tokenizer, 1 to kMaxVocabulary
  std::string validation_name = {};         // file in the folder; empty: the one with "val" in its name
  std::optional<TokenId> end_of_text = {};  // the token that ends each document, below `vocabulary`
  /// Without a validation file, this part of all tokens is held out, at most kMaxHeldOutTokens.
  double validation_fraction = 0.05;
};

inline constexpr uint64_t kMaxHeldOutTokens = uint64_t{10} << 20;

/// Bytes of token files read so far, and in all.
using AdoptProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Describes a folder of token files that another program made (llm.c, modded-nanogpt, Megatron, datatrove),
/// so that it is a dataset folder (worker/data/dataset.h). Writes meta.json and changes no other file.
/// Training files are those with "train" in their name, or, when there are none, all other *.bin and *.ds;
/// their text is in the order of their names. Without a validation file the end of the last training file is
/// held out, or all of it when it is shorter than that.
///
/// Reads every token once. AlreadyExists when the folder has a meta.json; NotFound without a token file;
/// InvalidArgument for a file that is no token file or holds a token outside the vocabulary, for several
/// validation files, and for a text that is too short to hold a part out.
absl::StatusOr<DatasetDescription> Adopt(const AdoptOptions& options, const AdoptProgress& progress);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_ADOPT_H_
