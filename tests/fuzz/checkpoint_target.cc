#include <string>

#include "common/crc32c.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_manifest.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

/// With the checksum that it should have; as it is when it is no JSON object.
std::string WithCrc(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return text;
  json.erase("crc32c");
  // The checksum is of the text without it.
  const auto dump = [&] { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); };
  const uint32_t crc = Crc32c(std::string_view(dump()));
  json["crc32c"] = crc;
  return dump();
}

}  // namespace

// fix:u8, odd: with the right checksum; then checkpoint.json.
void FuzzCheckpointManifest(FuzzInput in) {
  const bool fix = in.Byte() % 2 == 1;
  const std::string text = in.RestText();
  const auto manifest = DecodeCheckpointManifest(fix ? WithCrc(text) : text, "input");
  if (!manifest.ok()) return;
  for (const CheckpointFile& file : manifest->files) {
    ATOLL_FUZZ_REQUIRE(!file.path.empty() && file.path.front() != '/');
  }
  const auto again = DecodeCheckpointManifest(EncodeCheckpointManifest(*manifest), "again");
  ATOLL_FUZZ_REQUIRE(again.ok() && *again == *manifest);
}

}  // namespace atl::fuzz
