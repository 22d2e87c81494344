#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "common/crc32c.h"
#include "storage/meta_keys.h"
#include "storage/record.h"
#include "storage/record_writer.h"
#include "storage/run_loader.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

/// With the checksum that it should have, so that what is behind it is reached.
std::string WithCrc(std::string record) {
  for (const char byte : std::array<char, 4>{}) record.push_back(byte);
  const uint32_t crc = Crc32c(std::string_view(record).substr(0, record.size() - kRecordTrailerBytes));
  for (size_t i = 0; i < kRecordTrailerBytes; ++i) {
    record[record.size() - kRecordTrailerBytes + i] = static_cast<char>(crc >> (8 * i));
  }
  return record;
}

/// What is read and written again is read the same: nothing was lost or guessed. (A record of an older format
/// grows by the fields that it did not have, and stays as it is from then on.)
template <Record T>
void Decode(const std::string& record) {
  const absl::StatusOr<T> value = DecodeRecord<T>("key", record);
  if (!value.ok()) return;
  const std::string again = EncodeRecord(*value);
  const absl::StatusOr<T> same = DecodeRecord<T>("key", again);
  ATOLL_FUZZ_REQUIRE(same.ok() && EncodeRecord(*same) == again);
  ATOLL_FUZZ_REQUIRE(!meta_keys::KeyOf(*value).empty());
}

constexpr auto kDecoders = std::to_array<void (*)(const std::string&)>(
    {Decode<RunIdentity>, Decode<Manifest>, Decode<ConfigEntry>, Decode<WorkerEntry>, Decode<PartitionEntry>,
     Decode<HeadEntry>, Decode<StoredEntry>, Decode<RoundRecord>, Decode<Contribution>,
     Decode<EvaluationEntry>, Decode<EventEntry>, Decode<ControlEntry>, Decode<ConfirmationEntry>});

}  // namespace

// kind:u8, as stored (1 to 13); above 127 the rest is a whole record, else the fields of one.
void FuzzRecord(FuzzInput in) {
  const uint8_t kind = in.Byte();
  const size_t decoder = (kind + 127U) % 128U % kDecoders.size();
  if (kind > 127) return kDecoders[decoder](in.RestText());
  std::string record{static_cast<char>(kRecordFormat), static_cast<char>(decoder + 1)};
  kDecoders[decoder](WithCrc(record + in.RestText()));
}

// Records: key size:u8, value size:u16, key, value without its checksum.
void FuzzRunLoader(FuzzInput in) {
  RunLoader loader;
  while (!in.empty()) {
    const size_t key_bytes = in.Byte();
    const size_t value_bytes = in.Number(2);
    const std::string key = in.Text(key_bytes);
    if (!loader.Add(key, WithCrc(in.Text(value_bytes))).ok()) return;
  }
  static_cast<void>(std::move(loader).Finish());
}

}  // namespace atl::fuzz
