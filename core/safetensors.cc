#include "core/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr uint64_t kLengthBytes = 8;
// A tensor is an object of three members, two of which are lists.
constexpr JsonBounds kHeaderBounds = {.depth = 4, .values = kMaxTensors * (16 + kMaxTensorRank)};
constexpr char kIncomplete[] = "; if it was copied or downloaded, do that again";
// Of the metadata.
constexpr char kBaseKey[] = "base_fingerprint";
constexpr char kEmbeddingsKey[] = "embeddings";
constexpr char kAveragedKey[] = "averaged";

absl::Status Bad(std::string_view source, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is not a safetensors file: %s", std::string(source), what));
}

/// Reads one entry's dtype, shape and range; the range is still relative to the data section.
absl::StatusOr<std::pair<uint64_t, SafetensorsEntry>> ParseEntry(const std::string& name, const Json& json,
                                                                 std::span<const std::byte> data,
                                                                 std::string_view source) {
  SafetensorsEntry entry{.name = name, .dtype = {}, .shape = {}, .bytes = {}};
  const auto bad = [&](std::string_view what) {
    return Bad(source, absl::StrFormat("tensor '%s' %s", ForeignName(name), std::string(what)));
  };
  if (name.empty() || name.size() > kMaxTensorName) return bad("has an empty or overlong name");
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !json["shape"].is_array() || !json.contains("data_offsets") || !json["data_offsets"].is_array() ||
      json["data_offsets"].size() != 2) {
    return bad("lacks dtype, shape or data_offsets");
  }
  entry.dtype = json["dtype"].get<std::string>();
  uint64_t bytes = SafetensorsDtypeBytes(entry.dtype);
  if (bytes == 0) return bad(absl::StrFormat("has the unknown dtype '%s'", ForeignName(entry.dtype)));
  if (json["shape"].size() > kMaxTensorRank) return bad("has too many dimensions");
  for (const Json& dimension : json["shape"]) {
    if (!dimension.is_number_unsigned()) return bad("has a dimension that is not a whole number");
    const uint64_t d = dimension.get<uint64_t>();
    if (d > kMaxRunElements || (d != 0 && bytes > (kMaxRunElements * 8) / d)) return bad("is too large");
    bytes *= d;
    entry.shape.push_back(static_cast<int64_t>(d));
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return bad("has bad data_offsets");
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end) return bad("has data_offsets that end before they begin");
  if (end > data.size()) return bad(absl::StrCat("reaches beyond the end of the file", kIncomplete));
  if (end - begin != bytes) return bad("has a range that does not fit its shape and dtype");
  entry.bytes = data.subspan(begin, bytes);
  return std::pair(begin, std::move(entry));
}

absl::StatusOr<Json> ParseHeader(std::span<const std::byte> file, std::string_view source) {
  if (file.size() < kLengthBytes) {
    return Bad(source, absl::StrCat("it is shorter than 8 bytes", kIncomplete));
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeader) {
    return Bad(source, absl::StrFormat("its header claims %d bytes; at most %d are allowed", length,
                                       kMaxSafetensorsHeader));
  }
  if (length > file.size() - kLengthBytes) {
    return Bad(source,
               absl::StrFormat("its header claims %d bytes, more than follow%s", length, kIncomplete));
  }
  const char* text = reinterpret_cast<const char*>(file.data() + kLengthBytes);
  // The format says so, and JSON may begin with spaces.
  if (length == 0 || *text != '{') return Bad(source, "its header is not a JSON object");
  auto json = ParseBoundedJson({text, length}, kHeaderBounds);
  if (json.ok()) return json;
  return Bad(source, absl::StrFormat("its header %s", std::string(json.status().message())));
}

}  // namespace

uint64_t SafetensorsDtypeBytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL") return 1;
  return 0;
}

std::string SafetensorsHeader(std::span<const SafetensorsSpec> tensors,
                              const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json;
  if (!metadata.empty()) json["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsSpec& tensor : tensors) {
    uint64_t end = SafetensorsDtypeBytes(tensor.dtype);
    for (const int64_t dimension : tensor.shape) end *= static_cast<uint64_t>(dimension);
    end += offset;
    json[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json.dump();
  text.append((8 - (kLengthBytes + text.size()) % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string header(reinterpret_cast<const char*>(&length), kLengthBytes);
  return header + text;
}

std::string SafetensorsHeader(const Manifest& manifest, const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsSpec> tensors;
  for (const TensorSpec& tensor : manifest.tensors) tensors.push_back({tensor.name, "F32", tensor.shape});
  return SafetensorsHeader(tensors, metadata);
}

std::map<std::string, std::string> ManifestMetadata(const Manifest& manifest) {
  std::map<std::string, std::string> metadata;
  if (!manifest.base_fingerprint.empty()) metadata[kBaseKey] = manifest.base_fingerprint;
  Json embeddings = Json::array();
  Json averaged = Json::array();
  for (const TensorSpec& tensor : manifest.tensors) {
    if (tensor.embedding) embeddings.push_back(tensor.name);
    if (tensor.averaged) averaged.push_back(tensor.name);
  }
  if (!embeddings.empty()) metadata[kEmbeddingsKey] = embeddings.dump();
  if (!averaged.empty()) metadata[kAveragedKey] = averaged.dump();
  return metadata;
}

namespace {

absl::Status WrongMetadata(std::string_view source, const char* key, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: the metadata '%s' %s", std::string(source), key, what));
}

/// The tensors that the metadata lists under `key`.
absl::StatusOr<std::set<std::string>> ListedNames(const SafetensorsFile& file, const char* key,
                                                  std::string_view source) {
  std::set<std::string> found;
  const auto listed = file.metadata.find(key);
  if (listed == file.metadata.end()) return found;
  const auto names = ParseBoundedJson(listed->second, kHeaderBounds);
  if (!names.ok() || !names->is_array()) {
    return Bad(source, absl::StrFormat("its metadata '%s' is not a list of names", key));
  }
  std::set<std::string_view> known;
  for (const SafetensorsEntry& entry : file.tensors) known.insert(entry.name);
  for (const Json& name : *names) {
    if (!name.is_string()) {
      const std::string shown = name.dump(-1, ' ', false, Json::error_handler_t::replace);
      return WrongMetadata(source, key, absl::StrCat("lists ", ForeignName(shown), ", which is no name"));
    }
    const auto text = name.get<std::string>();
    if (!known.contains(text)) {
      return WrongMetadata(source, key,
                           absl::StrCat("lists '", ForeignName(text), "', which the file does not have"));
    }
    found.insert(text);
  }
  return found;
}

}  // namespace

absl::StatusOr<Manifest> ManifestOfFile(const SafetensorsFile& file, std::string_view source) {
  Manifest manifest;
  ATOLL_ASSIGN_OR_RETURN(const std::set<std::string> embeddings, ListedNames(file, kEmbeddingsKey, source));
  ATOLL_ASSIGN_OR_RETURN(const std::set<std::string> averaged, ListedNames(file, kAveragedKey, source));
  for (const SafetensorsEntry& entry : file.tensors) {
    manifest.tensors.push_back({.name = entry.name,
                                .shape = entry.shape,
                                .embedding = embeddings.contains(entry.name),
                                .averaged = averaged.contains(entry.name)});
  }
  if (const auto base = file.metadata.find(kBaseKey); base != file.metadata.end()) {
    manifest.base_fingerprint = base->second;
  }
  if (!manifest.tensors.empty() && std::ranges::all_of(manifest.tensors, &TensorSpec::averaged)) {
    return WrongMetadata(
        source, kAveragedKey,
        absl::StrFormat("lists every tensor, from '%s' on; a model has at least one tensor that is "
                        "trained",
                        manifest.tensors.front().name));
  }
  const absl::Status valid = ValidateManifest(manifest);
  if (valid.ok()) return manifest;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s", std::string(source), std::string(valid.message())));
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(std::span<const std::byte> file, std::string_view source) {
  ATOLL_ASSIGN_OR_RETURN(const Json json, ParseHeader(file, source));
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  const std::span<const std::byte> data = file.subspan(kLengthBytes + length);
  if (json.size() > kMaxTensors + 1) return Bad(source, "it holds too many tensors");

  SafetensorsFile result;
  std::vector<std::pair<uint64_t, SafetensorsEntry>> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return Bad(source, "__metadata__ is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return Bad(source, "__metadata__ holds something other than text");
        result.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(auto entry, ParseEntry(name, value, data, source));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.bytes.size()) < std::pair(b.first, b.second.bytes.size());
  });
  uint64_t expected = 0;
  for (auto& [begin, entry] : entries) {
    if (begin != expected)
      return Bad(source, absl::StrFormat("tensor '%s' leaves a gap or overlaps", ForeignName(entry.name)));
    expected += entry.bytes.size();
    result.tensors.push_back(std::move(entry));
  }
  if (expected != data.size()) return Bad(source, "there are extra bytes after the last tensor");
  return result;
}

}  // namespace atl
