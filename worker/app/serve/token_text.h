#ifndef ATOLL_WORKER_APP_SERVE_TOKEN_TEXT_H_
#define ATOLL_WORKER_APP_SERVE_TOKEN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "core/token_width.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// A token as the API shows it: its text; "bytes:\xe2\x80" where that is a part of a character only;
/// "token_id:17" without a tokenizer (null).
std::string TokenText(const Tokenizer* tokenizer, TokenId token);

/// Characters that begin in these bytes.
size_t CharactersBegun(std::string_view bytes);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_TOKEN_TEXT_H_
