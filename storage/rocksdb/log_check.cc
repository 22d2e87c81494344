#include "storage/rocksdb/log_check.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/meta_keys.h"

namespace atl {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;  // checksum 4, length 2, type 1
constexpr size_t kSectorBytes = 512;
// A record of at least so many bytes may be written in several pieces.
constexpr size_t kWriteBytes = 65536;
constexpr uint8_t kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4;

/// Sees whether a batch names a record that is always written with a sync.
class SyncedKeys final : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice&) override {
    return See(key);
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& key) override { return See(key); }
  bool found() const { return found_; }

 private:
  rocksdb::Status See(const rocksdb::Slice& key) {
    const std::string_view name(key.data(), key.size());
    if (!name.starts_with(meta_keys::kEvents) && !name.starts_with(meta_keys::kConfirmations)) found_ = true;
    return rocksdb::Status::OK();
  }

  bool found_ = false;
};

bool WasSynced(const std::string& record) {
  SyncedKeys keys;
  return rocksdb::WriteBatch(record).Iterate(&keys).ok() && keys.found();
}

bool AllZero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
}

class LogBytes {
 public:
  explicit LogBytes(std::string_view bytes) : bytes_(bytes) {}

  /// The first piece that is not whole, and where the record begins that it is a part of.
  struct Bad {
    size_t at = 0;
    size_t record = 0;
  };
  std::optional<Bad> FirstBad() const {
    size_t record = 0;
    bool inside = false;  // a record that has begun and not ended
    for (size_t at = 0; at < bytes_.size();) {
      if (!inside) record = at;
      const std::optional<Piece> piece = PieceAt(at);
      if (!piece) return Bad{.at = at, .record = record};
      if (piece->type == kFirst) record = at;
      inside = piece->type == kFirst || (inside && piece->type == kMiddle);
      at = SkipPadding(piece->end);
    }
    return std::nullopt;
  }

  /// Whether a crash in the middle of a write can have left what begins here.
  bool IsTorn(const Bad& torn) const {
    const size_t size = bytes_.size();
    const size_t bad = torn.at;
    if (AllZero(bytes_.substr(bad))) return true;
    const bool ends_with_a_write = size % kSectorBytes == 0 || size - torn.record >= kWriteBytes;
    if (bad + kHeaderBytes > size) return ends_with_a_write;
    const size_t end = bad + kHeaderBytes + LengthAt(bad);
    const uint8_t type = TypeAt(bad);
    if (end > BlockEnd(bad) || type < kFull || type > kLast) return HasEmptySector(bad, bad + kHeaderBytes);
    if (end > size) return ends_with_a_write || HasEmptySector(bad, size);
    return HasEmptySector(bad, end);
  }

  /// Whether a record behind this place was synced before something else was written.
  bool HasSyncedBehind(size_t bad) const {
    std::string record;
    bool begun = false;
    for (size_t at = bad + 1; at < bytes_.size();) {
      const std::optional<Piece> piece = PieceAt(at);
      if (!piece) {
        begun = begun && SkipPadding(at) != at;
        at = std::max(at + 1, SkipPadding(at));
        continue;
      }
      if (piece->type == kFull || piece->type == kFirst) record.clear();
      record += piece->payload;
      const bool complete = piece->type == kFull || (piece->type == kLast && begun);
      begun = piece->type == kFirst || (begun && piece->type == kMiddle);
      at = piece->end;
      if (complete && !AllZero(bytes_.substr(at)) && WasSynced(record)) return true;
    }
    return false;
  }

 private:
  struct Piece {
    size_t end = 0;
    uint8_t type = 0;
    std::string_view payload;
  };

  static size_t BlockEnd(size_t at) { return (at / kBlockBytes + 1) * kBlockBytes; }
  static size_t SkipPadding(size_t at) { return BlockEnd(at) - at < kHeaderBytes ? BlockEnd(at) : at; }
  uint8_t ByteAt(size_t at) const { return static_cast<uint8_t>(bytes_[at]); }
  size_t LengthAt(size_t at) const { return ByteAt(at + 4) | ByteAt(at + 5) << 8; }
  uint8_t TypeAt(size_t at) const { return ByteAt(at + 6); }

  std::optional<Piece> PieceAt(size_t at) const {
    if (at + kHeaderBytes > std::min(BlockEnd(at), bytes_.size())) return std::nullopt;
    const size_t end = at + kHeaderBytes + LengthAt(at);
    const uint8_t type = TypeAt(at);
    if (end > std::min(BlockEnd(at), bytes_.size()) || type < kFull || type > kLast) return std::nullopt;
    uint32_t stored = 0;
    for (size_t i = 0; i < 4; ++i) stored |= uint32_t{ByteAt(at + i)} << (8 * i);
    // The type and the payload, masked as in leveldb.
    const uint32_t crc = Crc32c(bytes_.substr(at + 6, end - at - 6));
    if (stored != ((crc >> 15) | (crc << 17)) + 0xa282ead8U) return std::nullopt;
    return Piece{
        .end = end, .type = type, .payload = bytes_.substr(at + kHeaderBytes, end - at - kHeaderBytes)};
  }

  bool HasEmptySector(size_t begin, size_t end) const {
    while (begin < end) {
      const size_t next = std::min(end, (begin / kSectorBytes + 1) * kSectorBytes);
      if (AllZero(bytes_.substr(begin, next - begin))) return true;
      begin = next;
    }
    return false;
  }

  const std::string_view bytes_;
};

enum class LogKind { kWrites, kManifest };

absl::Status CheckLog(const std::string& path, LogKind kind) {
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const LogBytes log(bytes);
  const auto bad = log.FirstBad();
  if (!bad) return absl::OkStatus();
  const bool lost = kind == LogKind::kWrites && log.HasSyncedBehind(bad->at);
  if (!lost && log.IsTorn(*bad)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("%s is damaged at byte %d of %d, and a crash cannot have caused this damage", path,
                      bad->at, bytes.size()));
}

}  // namespace

absl::Status CheckMetaLogs(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  for (const std::string& name : names) {
    if (name.ends_with(".log")) ATOLL_RETURN_IF_ERROR(CheckLog(JoinPath(folder, name), LogKind::kWrites));
  }
  const std::string pointer = JoinPath(folder, "CURRENT");
  ATOLL_ASSIGN_OR_RETURN(const std::string current, ReadFile(pointer));
  if (!current.starts_with("MANIFEST-")) {
    return absl::DataLossError(absl::StrFormat("%s is damaged: it names no manifest", pointer));
  }
  const std::string manifest = JoinPath(folder, std::string(absl::StripSuffix(current, "\n")));
  // What CURRENT says is checked by RocksDB.
  return FileExists(manifest) ? CheckLog(manifest, LogKind::kManifest) : absl::OkStatus();
}

}  // namespace atl
