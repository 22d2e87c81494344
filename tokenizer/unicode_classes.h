#ifndef ATOLL_TOKENIZER_UNICODE_CLASSES_H_
#define ATOLL_TOKENIZER_UNICODE_CLASSES_H_

#include <cstddef>
#include <cstdint>

namespace atl {

// Classes of code points in Unicode 16.0.0, as bits. The regular expressions of tiktoken 0.14 and of
// tokenizers 0.23 have the same classes for every code point (tests/tokenizer compares them).
inline constexpr uint8_t kUpperLetter = 1;  // Lu, Lt
inline constexpr uint8_t kLowerLetter = 2;  // Ll
inline constexpr uint8_t kOtherLetter = 4;  // Lm, Lo
inline constexpr uint8_t kMark = 8;         // M
inline constexpr uint8_t kNumber = 16;      // N
inline constexpr uint8_t kSpace = 32;       // White_Space
inline constexpr uint8_t kNewline = 64;     // line feed, carriage return; they are kSpace too
inline constexpr uint8_t kNewNumber = 128;  // numbers of Unicode 17, which only Digits treats as such
inline constexpr uint8_t kLetter = kUpperLetter | kLowerLetter | kOtherLetter;

inline constexpr size_t kCodePoints = 0x110000;

/// One byte of bits for each code point. Made at the first call; thread-safe.
const uint8_t* UnicodeClasses();

}  // namespace atl

#endif  // ATOLL_TOKENIZER_UNICODE_CLASSES_H_
