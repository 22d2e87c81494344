#include "storage/weights/hf_folder.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"
#include "core/hf/config_file.h"
#include "core/hf/shard_index.h"
#include "core/safetensors.h"

namespace atl {
namespace {

constexpr size_t kPiece = size_t{1} << 18;  // values that are rounded and written together

/// One tensor of a file: values, or none for a tensor of zeros.
struct Source {
  const HfTensor* tensor = nullptr;
  std::span<const float> values;
};

uint64_t Elements(const HfTensor& tensor) {
  uint64_t elements = 1;
  for (const int64_t dimension : tensor.shape) elements *= static_cast<uint64_t>(dimension);
  return elements;
}

std::vector<Source> SourcesOf(const HfFolderContents& contents) {
  std::vector<Source> sources;
  for (size_t i = 0; i < contents.tensors.size(); ++i) {
    sources.push_back({.tensor = &contents.layout.tensors[i], .values = contents.tensors[i]});
  }
  for (const HfTensor& tensor : contents.layout.zeros) sources.push_back({.tensor = &tensor, .values = {}});
  return sources;
}

/// Writes tensors one behind the other.
class TensorWriter {
 public:
  TensorWriter(DurableFile& file, uint64_t offset, FileDtype dtype)
      : file_(file), offset_(offset), dtype_(dtype) {}

  absl::Status Write(const Source& source) {
    const uint64_t elements = Elements(*source.tensor);
    if (source.values.empty()) {
      // The file was made with its whole size, which is zeros.
      offset_ += elements * BytesPerValue(dtype_);
      return absl::OkStatus();
    }
    if (!source.tensor->transposed) return WriteValues(source.tensor->name, source.values);
    const auto rows = static_cast<uint64_t>(source.tensor->shape.back());  // of the run's tensor
    std::vector<float> in_file(elements);
    Transpose(source.values, rows, elements / rows, in_file);
    return WriteValues(source.tensor->name, in_file);
  }

 private:
  absl::Status WriteValues(const std::string& name, std::span<const float> values) {
    for (size_t begin = 0; begin < values.size(); begin += kPiece) {
      const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
      bytes_.resize(piece.size() * BytesPerValue(dtype_));
      if (const auto beyond = NarrowValues(piece, dtype_, bytes_)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("tensor '%s' has the value %g, which %s cannot hold; choose another --dtype",
                            name, piece[*beyond], TorchName(dtype_)));
      }
      ATOLL_RETURN_IF_ERROR(file_.WriteAt(offset_, bytes_));
      offset_ += bytes_.size();
    }
    return absl::OkStatus();
  }

  DurableFile& file_;
  uint64_t offset_;
  const FileDtype dtype_;
  std::vector<std::byte> bytes_;
};

absl::Status WriteShard(const std::string& path, const Shard& shard, std::span<const Source> sources,
                        const HfFolderContents& contents) {
  std::vector<SafetensorsSpec> specs;
  uint64_t size = 0;
  for (const size_t i : shard.tensors) {
    const HfTensor& tensor = *sources[i].tensor;
    specs.push_back({tensor.name, SafetensorsName(contents.dtype), tensor.shape});
    size += Elements(tensor) * BytesPerValue(contents.dtype);
  }
  std::map<std::string, std::string> metadata = contents.metadata;
  metadata["format"] = "pt";
  const std::string header = SafetensorsHeader(specs, metadata);
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kCreateNew));
  ATOLL_RETURN_IF_ERROR(file.Reserve(header.size() + size));  // a full disk is told before the work
  ATOLL_RETURN_IF_ERROR(file.Truncate(header.size() + size));
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(header))));
  TensorWriter writer(file, header.size(), contents.dtype);
  for (const size_t i : shard.tensors) ATOLL_RETURN_IF_ERROR(writer.Write(sources[i]));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

/// Returns the names of the files.
absl::StatusOr<std::vector<std::string>> WriteWeights(const std::string& folder,
                                                      const HfFolderContents& contents) {
  const std::vector<Source> sources = SourcesOf(contents);
  std::vector<std::string> names;
  std::vector<uint64_t> bytes;
  for (const Source& source : sources) {
    names.push_back(source.tensor->name);
    bytes.push_back(Elements(*source.tensor) * BytesPerValue(contents.dtype));
  }
  const std::vector<Shard> shards = PlanShards(bytes, contents.shard_bytes);
  if (shards.size() > kMaxHfShards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--shard-bytes %d would make %d files, and %d are read; choose more bytes",
                        contents.shard_bytes, shards.size(), kMaxHfShards));
  }
  std::vector<std::string> written;
  for (const Shard& shard : shards) {
    ATOLL_RETURN_IF_ERROR(WriteShard(JoinPath(folder, shard.file), shard, sources, contents));
    written.push_back(shard.file);
  }
  if (shards.size() == 1) return written;
  const std::string index = JoinPath(folder, kHfIndexFile);
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(index, ShardIndexText(shards, names, bytes)));
  written.emplace_back(kHfIndexFile);
  return written;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteHfFolder(const std::string& folder,
                                                       const HfFolderContents& contents) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<std::string> written, WriteWeights(folder, contents));
  const HfTokenIds& ids = contents.tokenizer.ids;
  const std::pair<std::string, std::string> texts[] = {
      {"config.json", HfConfigText(contents.layout, contents.dtype, ids)},
      {"generation_config.json", HfGenerationConfigText(ids)}};
  for (const auto& [name, text] : texts) {
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, name), text));
    written.push_back(name);
  }
  for (const auto& [name, text] : contents.tokenizer.files) {
    ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, name), text));
    written.push_back(name);
  }
  return written;
}

}  // namespace atl
