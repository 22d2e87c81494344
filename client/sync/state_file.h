#ifndef ATOLL_CLIENT_SYNC_STATE_FILE_H_
#define ATOLL_CLIENT_SYNC_STATE_FILE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/durable_file.h"
#include "common/mapped_file.h"

// The files in which a worker keeps its own state (docs/reference/worker.md, "What is kept"): a sequence of
// fields, little-endian, with nothing between them, then the crc32c of all of them, then a mark.
//
//   file   := magic:"ATOLLWS1" kind:u8 field* crc32c:u32 mark:u8 ~mark:u8
//   number := its bytes
//   string := bytes:u32 its bytes        vector := elements:u64 its bytes
//
// The mark is the only thing that is ever changed in place: one value in two bytes, of which the second is
// the complement. A mark that was half written counts as 0.

namespace atl {

static_assert(std::endian::native == std::endian::little, "fields are written as they lie in memory");

inline constexpr std::string_view kStateMagic = "ATOLLWS1";
enum class StateFileKind : uint8_t { kRound = 1, kPush = 2 };

/// Writes one such file beside its final place. Not thread-safe; without Commit nothing is left.
class StateFileWriter {
 public:
  static absl::StatusOr<StateFileWriter> Create(const std::string& path, StateFileKind kind);
  ~StateFileWriter();
  StateFileWriter(StateFileWriter&&) noexcept = default;
  StateFileWriter& operator=(StateFileWriter&&) noexcept = default;

  /// The first error sticks and is what Commit returns.
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    Put(std::as_bytes(std::span(&value, 1)));
  }
  void Text(std::string_view text);
  template <typename T>
  void Vector(std::span<const T> values) {
    Number(uint64_t{values.size()});
    Put(std::as_bytes(values));
  }

  /// Synced, renamed to its place, the folder synced.
  absl::Status Commit();

 private:
  StateFileWriter(DurableFile file, std::string path, std::string temporary)
      : file_(std::move(file)), path_(std::move(path)), temporary_(std::move(temporary)) {}
  void Put(std::span<const std::byte> bytes);
  void Write(std::span<const std::byte> bytes);
  void Flush();

  DurableFile file_;
  std::string path_;
  std::string temporary_;            // empty once committed
  std::vector<std::byte> gathered_;  // small fields that wait for one write together
  uint64_t written_ = 0;
  uint32_t crc_ = 0;
  absl::Status status_;
};

/// Reads one. Every getter checks what is left, and the first error sticks: read all, then ask status().
class StateFileReader {
 public:
  /// NotFound when there is none, DataLoss when it is damaged or of another kind; both name the file.
  static absl::StatusOr<StateFileReader> Open(const std::string& path, StateFileKind kind);

  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    Take(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::string Text();
  template <typename T>
  std::vector<T> Vector() {
    std::vector<T> values(Count(sizeof(T)));
    Take(std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// Whether nothing is left: for fields that were added at the end later.
  bool AtEnd() const { return rest_.empty(); }
  uint8_t mark() const { return mark_; }
  /// OK when everything was there and nothing is left over.
  absl::Status Finish() const;

 private:
  StateFileReader(MappedFile file, std::span<const std::byte> rest, uint8_t mark)
      : file_(std::move(file)), rest_(rest), mark_(mark) {}
  uint64_t Count(size_t element_bytes);
  void Take(std::span<std::byte> out);
  void Fail();

  MappedFile file_;
  std::span<const std::byte> rest_;
  uint8_t mark_ = 0;
  bool failed_ = false;
};

/// Sets the mark of a file that is there, and syncs it.
absl::Status MarkStateFile(const std::string& path, uint8_t mark);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_STATE_FILE_H_
