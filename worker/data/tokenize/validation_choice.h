#ifndef ATOLL_WORKER_DATA_TOKENIZE_VALIDATION_CHOICE_H_
#define ATOLL_WORKER_DATA_TOKENIZE_VALIDATION_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// Which part of a text is held out.
struct ValidationChoice {
  enum class By : uint8_t {
    kShare,  // the last `share` of the tokens, after shuffling
    kHash,   // the documents whose hash is below `share` of all hashes: the same ones in every data set
    kFiles,  // the documents of `files`
  };
  By by = By::kShare;
  double share = 0.05;                  // in (0, 1)
  std::vector<std::string> files = {};  // as inputs are named

  /// Of kHash: whether a document with this hash (DocumentHash) is held out.
  bool HoldsOut(uint64_t hash) const;
};

/// Reads "0.05" or "share:0.05", "hash:0.05", and "file:NAME", which may stand several times. InvalidArgument
/// for other texts, numbers outside (0, 1) and mixed kinds.
absl::StatusOr<ValidationChoice> ParseValidation(const std::vector<std::string>& texts);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_VALIDATION_CHOICE_H_
