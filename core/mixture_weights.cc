#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/mixture_order.h"

namespace atl {
namespace {

/// A decimal number as digits * 10^exponent.
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;
};

constexpr size_t kMostDigits = 15;
constexpr int kMostExponent = 15;

absl::Status Wrong(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "weight '%s': expected a number above 0 and below 1e15, such as 0.7 or 30, with at most %d digits",
      text, kMostDigits));
}

/// nullopt: no number above 0 in the range.
std::optional<Decimal> ParseDecimal(const std::string& text) {
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  Decimal number;
  if (end < text.size() && !absl::SimpleAtoi(text.substr(end + 1), &number.exponent)) return std::nullopt;
  std::string digits = text.substr(0, end);
  const size_t point = digits.find('.');
  if (point != std::string::npos) {
    digits.erase(point, 1);
    number.exponent -= static_cast<int>(digits.size() - point);
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++number.exponent;
  }
  const bool only_digits = digits.find_first_not_of("0123456789") == std::string::npos;
  if (digits.empty() || digits.size() > kMostDigits || !only_digits) return std::nullopt;
  const int magnitude = number.exponent + static_cast<int>(digits.size());
  if (number.exponent < -kMostExponent || magnitude > kMostExponent) return std::nullopt;
  if (!absl::SimpleAtoi(digits, &number.digits)) return std::nullopt;
  return number;
}

/// The exact ratio as whole numbers; empty if they do not fit.
std::vector<uint64_t> ExactRatio(const std::vector<Decimal>& numbers) {
  const int lowest = std::ranges::min(numbers, {}, &Decimal::exponent).exponent;
  std::vector<uint64_t> whole;
  for (const Decimal& number : numbers) {
    uint64_t value = number.digits;
    for (int power = lowest; power < number.exponent; ++power) {
      if (value > UINT64_MAX / 10) return {};
      value *= 10;
    }
    whole.push_back(value);
  }
  const uint64_t divisor =
      std::accumulate(whole.begin(), whole.end(), uint64_t{0}, std::gcd<uint64_t, uint64_t>);
  for (uint64_t& value : whole) value /= divisor;
  return whole;
}

/// Weights with the sum kMaxMixtureWeights, by largest remainder.
std::vector<uint64_t> RoundedRatio(const std::vector<Decimal>& numbers) {
  std::vector<double> shares;
  for (const Decimal& number : numbers)
    shares.push_back(static_cast<double>(number.digits) * std::pow(10.0, number.exponent));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<uint64_t> whole;
  for (double& share : shares) {
    share *= kMaxMixtureWeights / sum;
    whole.push_back(static_cast<uint64_t>(share));
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto remainder = [&](size_t i) { return shares[i] - static_cast<double>(whole[i]); };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
  uint64_t left = kMaxMixtureWeights - std::accumulate(whole.begin(), whole.end(), uint64_t{0});
  for (size_t i = 0; i < order.size() && left > 0; ++i, --left) ++whole[order[i]];
  return whole;
}

bool Fits(const std::vector<uint64_t>& whole) {
  uint64_t sum = 0;
  for (const uint64_t value : whole) {
    if (value > kMaxMixtureWeights) return false;
    sum += value;
  }
  return !whole.empty() && sum <= kMaxMixtureWeights;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> WholeWeights(std::span<const std::string> texts) {
  std::vector<Decimal> numbers;
  for (const std::string& text : texts) {
    const std::optional<Decimal> number = ParseDecimal(text);
    if (!number) return Wrong(text);
    numbers.push_back(*number);
  }
  if (numbers.empty()) return std::vector<uint32_t>();
  std::vector<uint64_t> whole = ExactRatio(numbers);
  if (!Fits(whole)) whole = RoundedRatio(numbers);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("weight '%s': its share rounds to 0 of %d, the most parts of a mixture's samples; "
                        "raise it, or leave this "
                        "dataset out",
                        texts[i], kMaxMixtureWeights));
  }
  return std::vector<uint32_t>(whole.begin(), whole.end());
}

}  // namespace atl
