#include <cstring>
#include <string>
#include <vector>

#include "core/fragment_plan.h"
#include "core/safetensors.h"
#include "server/opening/import_seed.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

/// mode:u8, 0: the rest is the file; else data size:u16, and the rest is the JSON of a file with so many
/// bytes of data.
std::vector<std::byte> TakeFile(FuzzInput& in) {
  const bool whole = in.Byte() == 0;
  const size_t data_bytes = whole ? 0 : in.Number(2);
  const std::span<const std::byte> rest = in.Rest();
  const uint64_t header_bytes = rest.size();
  const size_t begin = whole ? 0 : sizeof(header_bytes);
  std::vector<std::byte> file(begin + rest.size() + data_bytes);
  if (!whole) std::memcpy(file.data(), &header_bytes, sizeof(header_bytes));
  if (!rest.empty()) std::memcpy(file.data() + begin, rest.data(), rest.size());
  return file;
}

}  // namespace

void FuzzSafetensors(FuzzInput in) {
  const std::vector<std::byte> file = TakeFile(in);
  const auto parsed = ParseSafetensors(file, "input");
  if (!parsed.ok()) return;
  size_t bytes = 0;
  for (const SafetensorsEntry& tensor : parsed->tensors) {
    ATOLL_FUZZ_REQUIRE(!tensor.name.empty() && tensor.shape.size() <= kMaxTensorRank);
    ATOLL_FUZZ_REQUIRE(tensor.bytes.empty() ||
                       (tensor.bytes.data() >= file.data() &&
                        tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size()));
    bytes += tensor.bytes.size();
  }
  ATOLL_FUZZ_REQUIRE(bytes <= file.size());
}

// The same file as what a run of a small model is seeded from.
void FuzzSeedFile(FuzzInput in) {
  const Manifest manifest{.tensors = {{.name = "w", .shape = {2, 3}, .embedding = false},
                                      {.name = "b", .shape = {4}, .embedding = false}}};
  static const auto layouts = PlanFragments(manifest, 1);
  ATOLL_FUZZ_REQUIRE(layouts.ok());
  const MemoryFile file(TakeFile(in));
  const auto read = ReadSafetensors(file.path(), manifest, *layouts);
  if (read.ok()) ATOLL_FUZZ_REQUIRE(read->size() == layouts->size());
}

}  // namespace atl::fuzz
