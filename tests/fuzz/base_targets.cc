// What decodes files and payloads: nothing here includes gRPC.
#include <array>

#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

constexpr auto kTargets = std::to_array<Target>({
    {"codec", FuzzCodec},
    {"delta", FuzzDelta},
    {"zstd_block", FuzzZstdBlock},
    {"record", FuzzRecord},
    {"run_loader", FuzzRunLoader},
    {"safetensors", FuzzSafetensors},
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
    {"worker_state", FuzzWorkerState},
    {"identity", FuzzIdentity},
    {"checkpoint_manifest", FuzzCheckpointManifest},
});

}  // namespace

std::span<const Target> Targets() { return kTargets; }

}  // namespace atl::fuzz
