#ifndef ATOLL_TESTS_FUZZ_TARGETS_H_
#define ATOLL_TESTS_FUZZ_TARGETS_H_

#include <span>
#include <string_view>

#include "tests/fuzz/fuzz_input.h"

// One target for each decoder of foreign bytes. A target takes any bytes at all, hands them to the decoder,
// and looks at what must hold of the result: what was accepted is within its bounds, is what it says, and is
// written again as it was read. How an input is laid out stands above each target; make_corpus.py writes
// seeds in that layout.

namespace atl::fuzz {

void FuzzCodec(FuzzInput in);
void FuzzDelta(FuzzInput in);
void FuzzZstdBlock(FuzzInput in);
void FuzzChunkFrame(FuzzInput in);
void FuzzRecord(FuzzInput in);
void FuzzRunLoader(FuzzInput in);
void FuzzSafetensors(FuzzInput in);
void FuzzSeedFile(FuzzInput in);
void FuzzHfConfig(FuzzInput in);
void FuzzShardIndex(FuzzInput in);
void FuzzTokenFile(FuzzInput in);
void FuzzTokenLayout(FuzzInput in);
void FuzzTextSource(FuzzInput in);
void FuzzDatasetDescription(FuzzInput in);
void FuzzTokenizerJson(FuzzInput in);
void FuzzTiktoken(FuzzInput in);
void FuzzVocabMerges(FuzzInput in);
void FuzzTokenizerText(FuzzInput in);
void FuzzYamlConfig(FuzzInput in);
void FuzzConfigSettings(FuzzInput in);
void FuzzConfigBytes(FuzzInput in);
void FuzzClientMessage(FuzzInput in);
void FuzzServerMessage(FuzzInput in);
void FuzzWireStatus(FuzzInput in);
void FuzzWorkerState(FuzzInput in);
void FuzzIdentity(FuzzInput in);
void FuzzCheckpointManifest(FuzzInput in);
void FuzzEventJson(FuzzInput in);
void FuzzKubernetesJson(FuzzInput in);
void FuzzNames(FuzzInput in);

struct Target {
  std::string_view name;
  void (*run)(FuzzInput);
};

/// Those of this program (base_targets.cc, grpc_targets.cc); tests/fuzz/CMakeLists.txt has the same names.
std::span<const Target> Targets();
/// Null when there is none of this name.
const Target* FindTarget(std::string_view name);

}  // namespace atl::fuzz

#endif  // ATOLL_TESTS_FUZZ_TARGETS_H_
