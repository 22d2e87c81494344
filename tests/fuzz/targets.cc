#include "tests/fuzz/targets.h"

#include <algorithm>
#include <array>

namespace atl::fuzz {
namespace {

constexpr auto kTargets = std::to_array<Target>({
    {"codec", FuzzCodec},
    {"delta", FuzzDelta},
    {"zstd_block", FuzzZstdBlock},
    {"chunk_frame", FuzzChunkFrame},
    {"record", FuzzRecord},
    {"run_loader", FuzzRunLoader},
    {"safetensors", FuzzSafetensors},
    {"seed_file", FuzzSeedFile},
    {"hf_config", FuzzHfConfig},
    {"shard_index", FuzzShardIndex},
    {"token_file", FuzzTokenFile},
    {"token_layout", FuzzTokenLayout},
    {"text_source", FuzzTextSource},
    {"dataset_description", FuzzDatasetDescription},
    {"tokenizer_json", FuzzTokenizerJson},
    {"tiktoken", FuzzTiktoken},
    {"vocab_merges", FuzzVocabMerges},
    {"tokenizer_text", FuzzTokenizerText},
    {"yaml_config", FuzzYamlConfig},
    {"config_settings", FuzzConfigSettings},
    {"config_bytes", FuzzConfigBytes},
    {"client_message", FuzzClientMessage},
    {"server_message", FuzzServerMessage},
    {"wire_status", FuzzWireStatus},
    {"worker_state", FuzzWorkerState},
    {"identity", FuzzIdentity},
    {"checkpoint_manifest", FuzzCheckpointManifest},
    {"event_json", FuzzEventJson},
    {"kubernetes_json", FuzzKubernetesJson},
    {"names", FuzzNames},
});

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &Target::name);
  return found == kTargets.end() ? nullptr : found;
}

}  // namespace atl::fuzz
