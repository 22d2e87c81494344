#include "tokenizer/scanner.h"

#include <cstddef>
#include <cstdint>

#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace atl {
namespace {

/// The class of a character, and its bytes.
struct Seen {
  uint8_t bits;
  uint32_t bytes;
};

// One address for all scanners, so that the loops need no check of a static's initialisation.
const uint8_t* const kClasses = UnicodeClasses();

Seen LookWide(const char* at, const char* end) {
  const CodePoint point = DecodeUtf8(at, end);
  return {kClasses[point.value], point.bytes};
}

inline Seen Look(const char* at, const char* end) {
  const auto byte = static_cast<uint8_t>(*at);
  if (byte < 0x80) return {kClasses[byte], 1};
  return LookWide(at, end);
}

/// The end of a run of characters that have one of `bits`.
inline const char* SkipRun(const char* at, const char* end, uint8_t bits) {
  while (at < end) {
    const Seen seen = Look(at, end);
    if ((seen.bits & bits) == 0) break;
    at += seen.bytes;
  }
  return at;
}

constexpr uint8_t kNotOther = kLetter | kNumber | kSpace;

inline bool IsOther(uint8_t bits) { return (bits & kNotOther) == 0; }

inline const char* SkipOther(const char* at, const char* end) {
  while (at < end) {
    const Seen seen = Look(at, end);
    if (!IsOther(seen.bits)) break;
    at += seen.bytes;
  }
  return at;
}

inline const char* SkipNumbers(const char* at, const char* end, int most) {
  for (; most > 0 && at < end; --most) {
    const Seen seen = Look(at, end);
    if ((seen.bits & kNumber) == 0) break;
    at += seen.bytes;
  }
  return at;
}

enum class Case : uint8_t { kExact, kAny };

/// The end of 's, 't, 're, 've, 'm, 'll or 'd at `at`; `at` itself: there is none.
const char* ContractionEnd(const char* at, const char* end, Case letters) {
  if (end - at < 2 || *at != '\'') return at;
  const auto lower = [&](char c) {
    return letters == Case::kAny && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = lower(at[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return at;
  const char second = lower(at[2]);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
    return at + 3;
  // Without regard to case, U+017F (long s) is an s.
  if (letters == Case::kAny && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
  return at;
}

/// White space from `at` on.
struct Spaces {
  const char* end;
  const char* last;     // where the last character begins
  const char* newline;  // the end of the last line feed or carriage return; null: none
};

Spaces ScanSpaces(const char* at, const char* end) {
  Spaces spaces{at, at, nullptr};
  while (spaces.end < end) {
    const Seen seen = Look(spaces.end, end);
    if ((seen.bits & kSpace) == 0) break;
    spaces.last = spaces.end;
    spaces.end += seen.bytes;
    if ((seen.bits & kNewline) != 0) spaces.newline = spaces.end;
  }
  return spaces;
}

/// \s+(?!\S)|\s+: a character before something that is not white space belongs to the next piece, unless it
/// is alone.
const char* LeaveLast(const Spaces& spaces, const char* start, const char* end) {
  return spaces.end == end || spaces.last == start ? spaces.end : spaces.last;
}

const char* Gpt2End(const char* start, const char* end) {
  if (*start == '\'') {
    const char* const contraction = ContractionEnd(start, end, Case::kExact);
    if (contraction != start) return contraction;
  }
  const char* at = start;
  if (*at == ' ' && at + 1 < end) ++at;
  const uint8_t bits = Look(at, end).bits;
  if ((bits & kLetter) != 0) return SkipRun(at, end, kLetter);
  if ((bits & kNumber) != 0) return SkipRun(at, end, kNumber);
  if (IsOther(bits)) return SkipOther(at, end);
  return LeaveLast(ScanSpaces(start, end), start, end);
}

enum class LastSpaces : uint8_t { kAsElsewhere, kOnePiece };

/// What cl100k and o200k have in common: white space, and other characters with the line ends after them.
const char* OtherOrSpacesEnd(const char* start, const char* end, bool slashes, LastSpaces last) {
  const char* at = start;
  if (*at == ' ' && at + 1 < end) ++at;
  if (IsOther(Look(at, end).bits)) {
    at = SkipOther(at, end);
    while (at < end && (*at == '\r' || *at == '\n' || (slashes && *at == '/'))) ++at;
    return at;
  }
  const Spaces spaces = ScanSpaces(start, end);
  if (last == LastSpaces::kOnePiece && spaces.end == end) return end;
  if (spaces.newline != nullptr) return spaces.newline;
  return LeaveLast(spaces, start, end);
}

const char* Cl100kEnd(const char* start, const char* end, int most_digits, LastSpaces last) {
  if (*start == '\'') {
    const char* const contraction = ContractionEnd(start, end, Case::kAny);
    if (contraction != start) return contraction;
  }
  const Seen seen = Look(start, end);
  if ((seen.bits & kLetter) != 0) return SkipRun(start + seen.bytes, end, kLetter);
  if ((seen.bits & kNumber) != 0) return SkipNumbers(start, end, most_digits);
  if ((seen.bits & kNewline) == 0) {
    const char* const word = start + seen.bytes;
    const char* const word_end = SkipRun(word, end, kLetter);
    if (word_end != word) return word_end;
  }
  return OtherOrSpacesEnd(start, end, /*slashes=*/false, last);
}

constexpr uint8_t kUpperSet = kUpperLetter | kOtherLetter | kMark;
constexpr uint8_t kLowerSet = kLowerLetter | kOtherLetter | kMark;

/// U*L+ with U = kUpperSet, L = kLowerSet; null: no match. What follows the run of U decides: with a small
/// letter the run of L goes on from there; else U gives back characters until one is in L too, and L ends
/// with it.
const char* MixedWordEnd(const char* start, const char* end) {
  const char* at = start;
  const char* shared = nullptr;  // the end of the last character that is in both
  while (at < end) {
    const Seen seen = Look(at, end);
    if ((seen.bits & kUpperSet) == 0) break;
    at += seen.bytes;
    if ((seen.bits & kLowerSet) != 0) shared = at;
  }
  const char* const lower_end = SkipRun(at, end, kLowerSet);
  return lower_end != at ? lower_end : shared;
}

const char* O200kWordEnd(const char* start, const char* end) {
  const Seen seen = Look(start, end);
  const bool leads = (seen.bits & (kNewline | kLetter | kNumber)) == 0;
  const char* const word = leads ? start + seen.bytes : start;
  const char* found = MixedWordEnd(word, end);
  if (found == nullptr && leads) found = MixedWordEnd(start, end);
  if (found != nullptr) return ContractionEnd(found, end, Case::kAny);
  // U+L*: no character is in L here, or the first form would have matched.
  const char* const upper_end = SkipRun(word, end, kUpperSet);
  return upper_end == word ? nullptr : ContractionEnd(upper_end, end, Case::kAny);
}

const char* O200kEnd(const char* start, const char* end) {
  const char* const word = O200kWordEnd(start, end);
  if (word != nullptr) return word;
  const char* const numbers = SkipNumbers(start, end, 3);
  if (numbers != start) return numbers;
  return OtherOrSpacesEnd(start, end, /*slashes=*/true, LastSpaces::kAsElsewhere);
}

constexpr uint8_t kDigit = kNumber | kNewNumber;

}  // namespace

Scanner::Scanner(Pattern pattern, std::string_view text)
    : pattern_(pattern), at_(text.data()), end_(text.data() + text.size()), before_digit_(at_) {}

const char* Scanner::SmolLmEnd(const char* start) {
  const Seen seen = Look(start, end_);
  if ((seen.bits & kDigit) != 0) return start + seen.bytes;
  if (start >= before_digit_) {
    const char* at = start;
    while (at < end_) {
      const Seen next = Look(at, end_);
      if ((next.bits & kDigit) != 0) break;
      at += next.bytes;
    }
    before_digit_ = at;
  }
  return Gpt2End(start, before_digit_);
}

const char* Scanner::PieceEnd(const char* start) {
  switch (pattern_) {
    case Pattern::kGpt2:
      return Gpt2End(start, end_);
    case Pattern::kCl100k:
      return Cl100kEnd(start, end_, 3, LastSpaces::kAsElsewhere);
    case Pattern::kCl100kTiktoken:
      return Cl100kEnd(start, end_, 3, LastSpaces::kOnePiece);
    case Pattern::kQwen2:
      return Cl100kEnd(start, end_, 1, LastSpaces::kAsElsewhere);
    case Pattern::kO200k:
      return O200kEnd(start, end_);
    case Pattern::kSmolLm:
      return SmolLmEnd(start);
  }
  return end_;
}

}  // namespace atl
