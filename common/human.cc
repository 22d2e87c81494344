#include "common/human.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace {

// Three significant digits of a value below 1024.
std::string ThreeDigits(double value, int most_decimals) {
  if (value >= 99.95 || most_decimals == 0) return absl::StrFormat("%.0f", value);
  if (value >= 9.995 || most_decimals == 1) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

// Divides until the value, rounded to be printed, is below the base; returns the index of the suffix.
size_t Scale(double* value, double base, size_t suffixes) {
  size_t index = 0;
  while (*value >= base - 0.5 && index + 1 < suffixes) {
    *value /= base;
    ++index;
  }
  return index;
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kSuffixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  auto value = static_cast<double>(bytes);
  const size_t index = Scale(&value, 1024, std::size(kSuffixes));
  return absl::StrCat(ThreeDigits(value, 1), " ", kSuffixes[index]);
}

std::string HumanCount(double count) {
  static constexpr const char* kSuffixes[] = {"", "k", "M", "G", "T", "P"};
  if (!std::isfinite(count)) return std::isnan(count) ? "nan" : count > 0 ? "inf" : "-inf";
  if (count < 0) return absl::StrCat("-", HumanCount(-count));
  double value = count;
  const size_t index = Scale(&value, 1000, std::size(kSuffixes));
  const bool whole = index == 0 && value == std::floor(value);
  return absl::StrCat(ThreeDigits(value, whole ? 0 : 2), kSuffixes[index]);
}

std::string Counted(uint64_t count, std::string_view noun) {
  return absl::StrCat(count, " ", std::string(noun), count == 1 ? "" : "s");
}

std::string HumanRate(double per_second, std::string_view unit) {
  return absl::StrFormat("%s %s/s", HumanCount(per_second), std::string(unit));
}

std::string HumanDuration(Duration duration) {
  // The minimum duration has no positive counterpart.
  if (duration < Duration::zero())
    return absl::StrCat("-", HumanDuration(-std::max(duration, -Duration::max())));
  const double seconds = ToSeconds(duration);
  if (duration == Duration::zero()) return "0 s";
  if (seconds < 0.0009995) return absl::StrFormat("%.0f µs", seconds * 1e6);
  if (seconds < 0.9995) return absl::StrFormat("%.0f ms", seconds * 1e3);
  if (seconds < 59.95) return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%dh %02dm", whole / 3600, whole / 60 % 60);
  return absl::StrFormat("%dd %02dh", whole / 86400, whole / 3600 % 24);
}

}  // namespace atl
