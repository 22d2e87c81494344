#include "core/fragment_plan.h"
#include "server/opening/import_seed.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/tensor_file.h"

namespace atl::fuzz {

// The file of FuzzSafetensors, as what a run of a small model is seeded from.
void FuzzSeedFile(FuzzInput in) {
  const Manifest manifest{.tensors = {{.name = "w", .shape = {2, 3}, .embedding = false},
                                      {.name = "b", .shape = {4}, .embedding = false}}};
  static const auto layouts = PlanFragments(manifest, 1);
  ATOLL_FUZZ_REQUIRE(layouts.ok());
  const MemoryFile file(TakeTensorFile(in));
  const auto read = ReadSafetensors(file.path(), manifest, *layouts);
  if (read.ok()) ATOLL_FUZZ_REQUIRE(read->size() == layouts->size());
}

}  // namespace atl::fuzz
