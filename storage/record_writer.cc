#include "storage/record_writer.h"

#include <utility>

#include "common/crc32c.h"

namespace atl {

RecordWriter::RecordWriter(RecordKind kind) {
  PutLittleEndian(kRecordFormat);
  PutLittleEndian(static_cast<uint8_t>(kind));
}

void RecordWriter::Field(std::string_view name, const std::string& value) {
  PutLittleEndian(static_cast<uint32_t>(value.size()));
  bytes_.append(value);
}

std::string RecordWriter::Finish() {
  PutLittleEndian(Crc32c(std::string_view(bytes_)));
  return std::move(bytes_);
}

}  // namespace atl
