#ifndef ATOLL_COMMON_HUMAN_H_
#define ATOLL_COMMON_HUMAN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"

// Formats numbers for display.

namespace atl {

/// "0 B", "1023 B", "1.0 KiB", "12.3 MiB", "118 GiB": three digits, powers of 1024.
std::string HumanBytes(uint64_t bytes);
/// "0", "999", "1.23k", "12.3k", "123k", "1.23M": three digits, powers of 1000.
std::string HumanCount(double count);
/// "1 worker", "2 workers"; `noun` takes an s.
std::string Counted(uint64_t count, std::string_view noun);
/// "12.3k tok/s".
std::string HumanRate(double per_second, std::string_view unit);
/// "850 µs", "12 ms", "3.4 s", "1m 05s", "2h 03m", "3d 04h".
std::string HumanDuration(Duration duration);

}  // namespace atl

#endif  // ATOLL_COMMON_HUMAN_H_
