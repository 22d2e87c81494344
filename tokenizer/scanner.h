#ifndef ATOLL_TOKENIZER_SCANNER_H_
#define ATOLL_TOKENIZER_SCANNER_H_

#include <string_view>

#include "tokenizer/pattern.h"

namespace atl {

/// Divides a text into the pieces of a pattern, as the regular expression's leftmost matches would. The
/// pieces cover the text. Takes linear time: each byte is read a few times at most. Invalid UTF-8 is neither
/// letter, number nor space. Borrows the text.
class Scanner {
 public:
  Scanner(Pattern pattern, std::string_view text);

  /// False: no piece is left. A piece is never empty.
  bool Next(std::string_view& piece) {
    if (at_ == end_) return false;
    const char* const start = at_;
    at_ = PieceEnd(start);
    piece = std::string_view(start, static_cast<size_t>(at_ - start));
    return true;
  }
  /// Where the next piece begins.
  const char* at() const { return at_; }

 private:
  const char* PieceEnd(const char* start);
  const char* SmolLmEnd(const char* start);

  const Pattern pattern_;
  const char* at_;
  const char* const end_;
  const char* before_digit_;  // kSmolLm: no digit is before it
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_SCANNER_H_
