#ifndef ATOLL_COMMON_PRINTABLE_H_
#define ATOLL_COMMON_PRINTABLE_H_

#include <string>
#include <string_view>

namespace atl {

/// Foreign UTF-8 text without characters that change how surrounding text is shown: control characters (C0,
/// DEL, C1), line and paragraph separators, and the invisible Unicode characters that set the direction of
/// text, join words or mark text (U+061C, U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F, U+FEFF,
/// U+FFF9 to U+FFFB, U+E0000 to U+E007F). Keeps all other bytes.
std::string Printable(std::string_view text);

}  // namespace atl

#endif  // ATOLL_COMMON_PRINTABLE_H_
