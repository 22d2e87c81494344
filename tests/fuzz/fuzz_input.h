#ifndef ATOLL_TESTS_FUZZ_FUZZ_INPUT_H_
#define ATOLL_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace atl::fuzz {

/// Foreign bytes, taken apart front to back. What is not there any more reads as 0 or empty, so that every
/// input means something. Borrows its bytes.
class FuzzInput {
 public:
  explicit FuzzInput(std::span<const std::byte> bytes) : rest_(bytes) {}

  uint8_t Byte() {
    const std::span<const std::byte> taken = Bytes(1);
    return taken.empty() ? uint8_t{0} : std::to_integer<uint8_t>(taken.front());
  }
  /// Little-endian.
  uint32_t Number(size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint32_t{Byte()} << (8 * i);
    return value;
  }
  std::span<const std::byte> Bytes(size_t count) {
    const std::span<const std::byte> taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::string Text(size_t count) { return ToText(Bytes(count)); }

  std::span<const std::byte> Rest() { return Bytes(rest_.size()); }
  std::string RestText() { return ToText(Rest()); }
  bool empty() const { return rest_.empty(); }

 private:
  static std::string ToText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::span<const std::byte> rest_;
};

}  // namespace atl::fuzz

/// Ends the program, which is what a fuzzer takes for a find.
#define ATOLL_FUZZ_REQUIRE(condition)                                                     \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

#endif  // ATOLL_TESTS_FUZZ_FUZZ_INPUT_H_
