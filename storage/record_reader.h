#ifndef ATOLL_STORAGE_RECORD_READER_H_
#define ATOLL_STORAGE_RECORD_READER_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"
#include "storage/record_format.h"

namespace atl {

/// Reads the fields of one record in order. The first fault is kept and every later read leaves its target as
/// it was; Finish reports it. Never reads outside the record and never allocates more than a small multiple
/// of its size, whatever the bytes are. The record must outlive the reader.
class RecordReader {
 public:
  /// `key` is named in errors (escaped). Checks format, kind and crc before any field.
  RecordReader(std::string_view key, RecordKind kind, std::string_view record) : key_(key) {
    Open(kind, record);
  }

  template <typename T>
  requires std::integral<T> &&(!std::same_as<T, bool>)void Field(std::string_view name, T& value) {
    using U = std::make_unsigned_t<T>;
    if (const auto raw = TakeLittleEndian(name, sizeof(U))) value = static_cast<T>(static_cast<U>(*raw));
  }
  void Field(std::string_view name, bool& value);
  void Field(std::string_view name, float& value) {
    if (const auto raw = TakeLittleEndian(name, 4)) value = std::bit_cast<float>(static_cast<uint32_t>(*raw));
  }
  void Field(std::string_view name, double& value) {
    if (const auto raw = TakeLittleEndian(name, 8)) value = std::bit_cast<double>(*raw);
  }
  void Field(std::string_view name, std::string& value);
  template <typename Tag, typename Rep>
  void Field(std::string_view name, StrongId<Tag, Rep>& value) {
    Rep raw{};
    Field(name, raw);
    value = StrongId<Tag, Rep>(raw);
  }
  template <typename T>
  void Field(std::string_view name, std::optional<T>& value) {
    bool present = false;
    Field(name, present);
    if (present) Field(name, value.emplace());
  }
  /// One byte, from `first` to `last`.
  template <typename E>
  void EnumField(std::string_view name, E& value, E first, E last) {
    uint8_t raw = static_cast<uint8_t>(first);
    Field(name, raw);
    if (raw < static_cast<uint8_t>(first) || raw > static_cast<uint8_t>(last)) {
      Fail(name, "a value that this version does not know");
    }
    value = static_cast<E>(raw);
  }
  /// Elements are made one by one, so that a huge count costs nothing before the bytes run out.
  template <typename T, typename Each>
  void List(std::string_view name, std::vector<T>& values, const Each& each) {
    const auto count = TakeLittleEndian(name, 4);
    values.clear();
    for (uint64_t i = 0; ok() && i < count.value_or(0); ++i) {
      if (rest_.empty()) return Fail(name, "fewer elements than its count");
      each(values.emplace_back());
    }
  }

  bool ok() const { return fault_.ok(); }
  /// Where fields were added at the end of a body: whether this is an older record, which ends here and whose
  /// further fields keep their defaults.
  bool AtEnd() const { return ok() && rest_.empty(); }
  /// DataLoss naming the key and the first bad field; also when bytes are left over.
  absl::Status Finish();

 private:
  void Open(RecordKind kind, std::string_view record);
  std::optional<uint64_t> TakeLittleEndian(std::string_view name, size_t bytes);
  void Fail(std::string_view name, std::string_view what);

  const std::string_view key_;
  std::string_view rest_;
  absl::Status fault_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_RECORD_READER_H_
