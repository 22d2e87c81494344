#include "storage/checkpoint_manifest.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

using Json = nlohmann::json;  // keys sorted: one text for one manifest

// Text that is not UTF-8 is written with replacement characters instead of an exception.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string Hex(Epoch epoch) { return absl::StrFormat("%016x", epoch.value()); }

Json ToJson(const CheckpointManifest& manifest) {
  Json versions = Json::array();
  for (const Version version : manifest.versions) versions.push_back(version.value());
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"crc32c", file.crc32c}});
  }
  return {{"format", kCheckpointFormat},
          {"name", manifest.name},
          {"run_id", manifest.run_id},
          {"run_name", manifest.run_name},
          {"software_version", manifest.software_version},
          {"epoch", Hex(manifest.epoch)},
          {"versions", versions},
          {"committed_tokens", manifest.committed_tokens},
          {"created_unix_ns", manifest.created_unix_ns},
          {"automatic", manifest.automatic},
          {"files", files}};
}

bool IsInside(const std::string& path) {
  return !path.empty() && path.front() != '/' && path != ".." && !path.starts_with("../") &&
         path.find("/../") == std::string::npos && !path.ends_with("/..");
}

/// Reads fields one by one and remembers the first that is missing or of another type.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <typename T>
  T Field(const char* name) {
    const auto found = json_.find(name);
    if (found == json_.end() || !Fits<T>(*found)) {
      if (bad_.empty()) bad_ = name;
      return T{};
    }
    return found->get<T>();
  }
  const std::string& bad() const { return bad_; }

 private:
  template <typename T>
  static bool Fits(const Json& value) {
    if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
    if constexpr (std::is_same_v<T, std::string>) return value.is_string();
    if constexpr (std::is_same_v<T, Json>) return value.is_array();
    if constexpr (std::is_same_v<T, int64_t>) return value.is_number_integer();
    return value.is_number_unsigned();
  }

  const Json& json_;
  std::string bad_;
};

/// The name of the first field that is not as it must be; empty: none.
std::string Read(const Json& json, CheckpointManifest& manifest) {
  Reader reader(json);
  manifest.name = reader.Field<std::string>("name");
  manifest.run_id = reader.Field<std::string>("run_id");
  manifest.run_name = reader.Field<std::string>("run_name");
  manifest.software_version = reader.Field<std::string>("software_version");
  manifest.committed_tokens = reader.Field<uint64_t>("committed_tokens");
  manifest.created_unix_ns = reader.Field<int64_t>("created_unix_ns");
  manifest.automatic = reader.Field<bool>("automatic");
  uint64_t epoch = 0;
  if (!absl::SimpleHexAtoi(reader.Field<std::string>("epoch"), &epoch)) return "epoch";
  manifest.epoch = Epoch(epoch);
  for (const Json& version : reader.Field<Json>("versions")) {
    if (!version.is_number_unsigned()) return "versions";
    manifest.versions.push_back(Version(version.get<uint64_t>()));
  }
  for (const Json& file : reader.Field<Json>("files")) {
    if (!file.is_object()) return "files";
    Reader fields(file);
    manifest.files.push_back({.path = fields.Field<std::string>("path"),
                              .bytes = fields.Field<uint64_t>("bytes"),
                              .crc32c = static_cast<uint32_t>(fields.Field<uint64_t>("crc32c"))});
    if (!fields.bad().empty() || !IsInside(manifest.files.back().path)) return "files";
  }
  return reader.bad();
}

}  // namespace

std::string EncodeCheckpointManifest(const CheckpointManifest& manifest) {
  Json json = ToJson(manifest);
  json["crc32c"] = Crc32c(std::string_view(Dump(json, -1)));
  return Dump(json, 1) + "\n";
}

absl::StatusOr<CheckpointManifest> DecodeCheckpointManifest(std::string_view text, std::string_view source) {
  const auto bad = [&](std::string_view what) {
    return absl::DataLossError(absl::StrFormat("%s is damaged: %s", std::string(source), std::string(what)));
  };
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad("it is not a JSON object");
  const auto format = json.find("format");
  if (format != json.end() && format->is_number_unsigned() && *format > kCheckpointFormat) {
    return absl::FailedPreconditionError(absl::StrFormat("%s has format %d; this program reads up to %d",
                                                         std::string(source), format->get<uint64_t>(),
                                                         kCheckpointFormat));
  }
  const auto found = json.find("crc32c");
  if (found == json.end() || !found->is_number_unsigned()) return bad("its field 'crc32c' is missing");
  const auto crc = found->get<uint64_t>();
  json.erase(found);
  if (Crc32c(std::string_view(Dump(json, -1))) != crc) return bad("its checksum does not match");
  CheckpointManifest manifest;
  const std::string field = Read(json, manifest);
  if (!field.empty()) return bad(absl::StrFormat("its field '%s' is missing or wrong", field));
  return manifest;
}

absl::Status NoSuchCheckpoint(std::string_view name) {
  return absl::NotFoundError(absl::StrFormat("checkpoint '%s' does not exist", std::string(name)));
}

absl::Status CheckCheckpointName(std::string_view name) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool fits =
      !name.empty() && name.size() <= 63 && alphanumeric(name.front()) &&
      std::ranges::all_of(name, [&](char c) { return alphanumeric(c) || c == '.' || c == '-'; });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "checkpoint name \"%s\": at most 63 of a-z, 0-9, '.' and '-', beginning with a letter or digit",
      absl::CHexEscape(std::string(name.substr(0, 80)))));
}

}  // namespace atl
