#ifndef ATOLL_CLIENT_IPC_ENCODING_H_
#define ATOLL_CLIENT_IPC_ENCODING_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

// The fields of messages between the library and the engine: numbers as they lie in memory (both processes
// are of one machine), texts as bytes:u32 and their bytes, one after the other with nothing between.

namespace atl::ipc {

class Encoder {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads fields and never beyond the end: from the first field that is not all there on, everything is zero
/// or empty, and Finished is false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const std::string_view field = Bytes(sizeof(value));
    if (!failed_) std::memcpy(&value, field.data(), sizeof(value));
    return value;
  }
  std::string Text() { return std::string(Bytes(Number<uint32_t>())); }
  /// A number of entries of at least `entry_bytes` each. 0 when fewer bytes are left.
  uint32_t Count(size_t entry_bytes) {
    const auto count = Number<uint32_t>();
    if (count <= rest_.size() / entry_bytes) return count;
    Fail();
    return 0;
  }
  /// Everything was there, and nothing is left over.
  bool Finished() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view Bytes(size_t bytes) {
    if (failed_ || bytes > rest_.size()) {
      Fail();
      return {};
    }
    const std::string_view field = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return field;
  }
  void Fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace atl::ipc

#endif  // ATOLL_CLIENT_IPC_ENCODING_H_
