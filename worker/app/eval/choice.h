#ifndef ATOLL_WORKER_APP_EVAL_CHOICE_H_
#define ATOLL_WORKER_APP_EVAL_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/token_width.h"

namespace atl {

/// A question with several answers, as text.
struct ChoiceQuestion {
  std::string context = {};  // what the model reads before the answer; not empty
  /// As they continue the context, with the space before them; none is empty.
  std::vector<std::string> answers = {};
  std::vector<double> lengths = {};  // of each answer in characters, without that space; positive
  size_t right = 0;                  // index of the right answer
  std::string subject = {};          // MMLU's; else empty
};

/// The same in tokens.
struct ChoiceTokens {
  std::vector<TokenId> context = {};
  std::vector<std::vector<TokenId>> answers = {};
  std::vector<double> lengths = {};
  size_t right = 0;
  std::string subject = {};
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CHOICE_H_
