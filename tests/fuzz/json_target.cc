#include <string>

#include "server/events/event_json.h"
#include "server/launch/kubernetes_objects.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {

void FuzzEventJson(FuzzInput in) {
  const auto event = DecodeEvent(in.RestText());
  if (!event.ok()) return;
  const std::string text = EncodeEvent(*event);
  const auto again = DecodeEvent(text);
  ATOLL_FUZZ_REQUIRE(again.ok() && EncodeEvent(*again) == text);
}

// which:u8, then an answer of a cluster's API server.
void FuzzKubernetesJson(FuzzInput in) {
  const uint8_t which = in.Byte();
  const std::string json = in.RestText();
  if (which % 3 == 0) static_cast<void>(ParsePodList(json, "atoll-worker"));
  if (which % 3 == 1) static_cast<void>(ParsePod(json, "atoll-worker"));
  if (which % 3 == 2) static_cast<void>(ParseReplicas(json));
}

}  // namespace atl::fuzz
