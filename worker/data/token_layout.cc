#include "worker/data/token_layout.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/mapped_file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kMaxMetadataBytes = uint64_t{64} << 10;

absl::Status OfFile(const std::string& path, const absl::Status& status) {
  return {status.code(), absl::StrCat("token file ", path, ": ", std::string(status.message()))};
}

/// Megatron's layout, if the index beside the file is one of Megatron's.
absl::StatusOr<std::optional<TokenLayout>> FindMegatron(const std::string& path, uint64_t bytes) {
  constexpr std::string_view kSuffix = ".bin";
  if (!path.ends_with(kSuffix)) return std::nullopt;
  const std::string index_path = path.substr(0, path.size() - kSuffix.size()) + ".idx";
  if (!FileExists(index_path)) return std::nullopt;
  ATOLL_ASSIGN_OR_RETURN(const MappedFile index, MappedFile::Open(index_path));
  if (index.size() < kMegatronMagic.size() ||
      std::memcmp(index.bytes().data(), kMegatronMagic.data(), kMegatronMagic.size()) != 0) {
    return std::nullopt;
  }
  ATOLL_ASSIGN_OR_RETURN(const TokenLayout layout, MegatronLayout(index.bytes(), bytes));
  return layout;
}

absl::StatusOr<std::optional<uint64_t>> LastEnd(const std::string& index_path) {
  if (!FileExists(index_path)) return std::nullopt;
  ATOLL_ASSIGN_OR_RETURN(const DurableFile file, DurableFile::Open(index_path, OpenMode::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  uint64_t end = 0;
  if (size % sizeof(end) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("its index ", index_path, " has ", size,
                                                   " bytes, which are no whole numbers of 8 bytes"));
  }
  if (size == 0) return std::optional<uint64_t>(0);
  ATOLL_RETURN_IF_ERROR(file.ReadAt(size - sizeof(end), std::as_writable_bytes(std::span(&end, 1))));
  return std::optional<uint64_t>(end);
}

absl::StatusOr<std::optional<TokenLayout>> FindDatatrove(const std::string& path, uint64_t bytes) {
  std::optional<std::string> metadata;
  if (FileExists(path + ".metadata")) {
    ATOLL_ASSIGN_OR_RETURN(metadata, ReadFile(path + ".metadata", kMaxMetadataBytes));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::optional<uint64_t> end, LastEnd(path + ".index"));
  if (!metadata && !end) return std::nullopt;
  ATOLL_ASSIGN_OR_RETURN(const TokenLayout layout, DatatroveLayout(metadata, end, bytes));
  return layout;
}

}  // namespace

bool IsTokenFileName(std::string_view name) { return name.ends_with(".bin") || name.ends_with(".ds"); }

absl::StatusOr<TokenLayout> FindTokenLayout(const std::string& path, std::span<const std::byte> bytes) {
  for (const auto find : {FindMegatron, FindDatatrove}) {
    const absl::StatusOr<std::optional<TokenLayout>> found = find(path, bytes.size());
    if (!found.ok()) return OfFile(path, found.status());
    if (*found) return **found;
  }
  absl::StatusOr<TokenLayout> layout = LlmcLayout(bytes);
  if (!layout.ok()) return OfFile(path, layout.status());
  return layout;
}

}  // namespace atl
