// What the coordinator, the launcher and atollctl decode, and calls: these link gRPC.
#include <array>

#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

constexpr auto kTargets = std::to_array<Target>({
    {"chunk_frame", FuzzChunkFrame},
    {"seed_file", FuzzSeedFile},
    {"client_message", FuzzClientMessage},
    {"server_message", FuzzServerMessage},
    {"wire_status", FuzzWireStatus},
    {"event_json", FuzzEventJson},
    {"kubernetes_json", FuzzKubernetesJson},
    {"names", FuzzNames},
});

}  // namespace

std::span<const Target> Targets() { return kTargets; }

}  // namespace atl::fuzz
