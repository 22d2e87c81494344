#include "storage/record_reader.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"

namespace atl {
namespace {

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

}  // namespace

void RecordReader::Open(RecordKind kind, std::string_view record) {
  if (record.size() < kMinRecordBytes || record.size() > kMaxRecordBytes) {
    return Fail("header", absl::StrFormat("%d bytes, which is too short for a record", record.size()));
  }
  const std::string_view covered = record.substr(0, record.size() - kRecordTrailerBytes);
  const uint64_t stored = LittleEndian(record.substr(covered.size()));
  const uint64_t computed = Crc32c(covered);
  if (stored != computed) {
    return Fail("crc32c", absl::StrFormat("%08x, but its bytes have %08x", stored, computed));
  }
  const auto format = static_cast<uint8_t>(record[0]);
  if (format != kRecordFormat) {
    return Fail("format", absl::StrFormat("%d; this version reads %d", format, kRecordFormat));
  }
  const auto found = static_cast<uint8_t>(record[1]);
  if (found != static_cast<uint8_t>(kind)) {
    return Fail("kind", absl::StrFormat("%d; %d belongs here", found, static_cast<int>(kind)));
  }
  rest_ = covered.substr(kRecordHeaderBytes);
}

void RecordReader::Field(std::string_view name, bool& value) {
  const auto raw = TakeLittleEndian(name, 1);
  if (!raw) return;
  if (*raw > 1) return Fail(name, "neither 0 nor 1");
  value = *raw == 1;
}

void RecordReader::Field(std::string_view name, std::string& value) {
  const auto size = TakeLittleEndian(name, 4);
  if (!size) return;
  if (*size > rest_.size()) return Fail(name, "a length that goes beyond the record");
  value.assign(rest_.substr(0, *size));
  rest_.remove_prefix(*size);
}

absl::Status RecordReader::Finish() {
  if (ok() && !rest_.empty()) Fail("end", absl::StrFormat("%d bytes left over", rest_.size()));
  return fault_;
}

std::optional<uint64_t> RecordReader::TakeLittleEndian(std::string_view name, size_t bytes) {
  if (!ok()) return std::nullopt;
  if (rest_.size() < bytes) {
    Fail(name, "no bytes: the record is short");
    return std::nullopt;
  }
  const uint64_t value = LittleEndian(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
  return value;
}

void RecordReader::Fail(std::string_view name, std::string_view what) {
  if (!ok()) return;
  fault_ =
      absl::DataLossError(absl::StrFormat("record %s: field %s has %s", absl::CHexEscape(std::string(key_)),
                                          std::string(name), std::string(what)));
}

}  // namespace atl
