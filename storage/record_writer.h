#ifndef ATOLL_STORAGE_RECORD_WRITER_H_
#define ATOLL_STORAGE_RECORD_WRITER_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/ids.h"
#include "storage/record_format.h"

namespace atl {

/// Appends the fields of one record. It has the same calls as RecordReader, so that one list of fields
/// (record_fields.h) serves both directions; `name` is for the reader's errors.
class RecordWriter {
 public:
  explicit RecordWriter(RecordKind kind);

  template <typename T>
  requires std::integral<T> &&(!std::same_as<T, bool>)void Field(std::string_view name, const T& value) {
    PutLittleEndian(static_cast<std::make_unsigned_t<T>>(value));
  }
  void Field(std::string_view name, const bool& value) { PutLittleEndian(uint8_t{value}); }
  void Field(std::string_view name, const float& value) { PutLittleEndian(std::bit_cast<uint32_t>(value)); }
  void Field(std::string_view name, const double& value) { PutLittleEndian(std::bit_cast<uint64_t>(value)); }
  void Field(std::string_view name, const std::string& value);
  template <typename Tag, typename Rep>
  void Field(std::string_view name, const StrongId<Tag, Rep>& value) {
    PutLittleEndian(value.value());
  }
  template <typename T>
  void Field(std::string_view name, const std::optional<T>& value) {
    Field(name, value.has_value());
    if (value) Field(name, *value);
  }
  /// An enumeration stored as one byte.
  template <typename E>
  void EnumField(std::string_view name, const E& value, E first, E last) {
    PutLittleEndian(static_cast<uint8_t>(value));
  }
  /// A count, then `each(element)` for every element.
  template <typename T, typename Each>
  void List(std::string_view name, const std::vector<T>& values, const Each& each) {
    PutLittleEndian(static_cast<uint32_t>(values.size()));
    for (const T& value : values) each(value);
  }

  /// See RecordReader: what is written has every field.
  bool AtEnd() const { return false; }

  /// The finished record, crc included. The writer is spent.
  std::string Finish();

 private:
  template <typename U>
  void PutLittleEndian(U value) {
    for (size_t i = 0; i < sizeof(U); ++i) {
      bytes_.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
    }
  }

  std::string bytes_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_RECORD_WRITER_H_
