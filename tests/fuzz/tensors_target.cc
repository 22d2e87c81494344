#include <vector>

#include "core/safetensors.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/tensor_file.h"

namespace atl::fuzz {

void FuzzSafetensors(FuzzInput in) {
  const std::vector<std::byte> file = TakeTensorFile(in);
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

}  // namespace atl::fuzz
