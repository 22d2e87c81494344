#include "storage/rocksdb/tensor_files.h"

#include <rocksdb/sst_file_writer.h>

#include <bit>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/big_endian.h"
#include "storage/rocksdb/rocksdb_options.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace atl {
namespace {

// A value is the memory of its floats.
static_assert(std::endian::native == std::endian::little);

/// Writes values from `next` on into one file; moves `next` behind the last one.
absl::Status WriteOneFile(const std::string& path, FragmentId fragment, Version version,
                          const std::vector<ChunkValue>& values, FileCaching caching, size_t& next) {
  const std::string doing = absl::StrFormat("write %s", path);
  const rocksdb::Options options = ShardOptions();
  rocksdb::SstFileWriter writer(TensorFileOptions(caching), options, nullptr,
                                /*invalidate_page_cache=*/false);
  ATOLL_RETURN_IF_ERROR(FromRocksDb(writer.Open(path), doing));
  for (uint64_t bytes = 0; next < values.size() && bytes < kMaxTensorFileBytes; ++next) {
    const ChunkValue& value = values[next];
    const rocksdb::Slice contents(reinterpret_cast<const char*>(value.values.data()),
                                  value.values.size_bytes());
    const std::string key = TensorKey(fragment, version, value.vector, value.chunk);
    ATOLL_RETURN_IF_ERROR(FromRocksDb(writer.Put(key, contents), doing));
    bytes += contents.size();
  }
  return FromRocksDb(writer.Finish(), doing);
}

}  // namespace

std::string TensorKeysBegin(FragmentId fragment, Version version) {
  std::string key;
  AppendBigEndian<4>(key, fragment.value());
  AppendBigEndian<8>(key, version.value());
  return key;
}

std::string TensorKey(FragmentId fragment, Version version, uint8_t vector, uint32_t chunk) {
  std::string key = TensorKeysBegin(fragment, version);
  AppendBigEndian<1>(key, vector);
  AppendBigEndian<4>(key, chunk);
  return key;
}

std::optional<std::pair<FragmentId, Version>> VersionOfTensorKey(std::string_view key) {
  if (key.size() < TensorKeysBegin(FragmentId(0), Version(0)).size()) return std::nullopt;
  uint64_t fragment = 0, version = 0;
  for (size_t i = 0; i < 4; ++i) fragment = fragment << 8 | static_cast<uint8_t>(key[i]);
  for (size_t i = 4; i < 12; ++i) version = version << 8 | static_cast<uint8_t>(key[i]);
  return std::pair(FragmentId(static_cast<uint32_t>(fragment)), Version(version));
}

absl::StatusOr<std::vector<std::string>> WriteTensorFiles(FragmentId fragment, Version version,
                                                          const std::vector<ChunkValue>& values,
                                                          FileCaching caching,
                                                          const std::function<std::string()>& new_path) {
  std::vector<std::string> files;
  for (size_t next = 0; next < values.size();) {
    files.push_back(new_path());
    const absl::Status written = WriteOneFile(files.back(), fragment, version, values, caching, next);
    if (written.ok()) continue;
    for (const std::string& file : files) RemoveFile(file).IgnoreError();
    return written;
  }
  return files;
}

}  // namespace atl
