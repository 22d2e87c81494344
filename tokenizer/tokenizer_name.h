#ifndef ATOLL_TOKENIZER_TOKENIZER_NAME_H_
#define ATOLL_TOKENIZER_TOKENIZER_NAME_H_

#include <string>

#include "tokenizer/bpe_model.h"

namespace atl {

/// The name of a tokenizer, by which runs and datasets compare: that of a published one if the model makes
/// its tokens, else the pattern and eight digits of a SHA-256 over everything that decides the tokens of a
/// text.
std::string TokenizerName(const BpeModel& model);

}  // namespace atl

#endif  // ATOLL_TOKENIZER_TOKENIZER_NAME_H_
