#ifndef ATOLL_SERVER_LAUNCH_KUBERNETES_OBJECTS_H_
#define ATOLL_SERVER_LAUNCH_KUBERNETES_OBJECTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/launch/launcher.h"

// Reads the needed fields of the API server's answers (kinds Pod, PodList and autoscaling/v1 Scale of the
// Kubernetes API reference). Missing fields get their defaults; a field of a wrong type is InvalidArgument
// with its name.

namespace atl {

struct Pod {
  std::string uid = {};
  uint32_t ordinal = 0;  // the number at the end of its worker's name
  LaunchedWorker worker = {};
  std::string trouble = {};  // why it does not run: the reason and message of a waiting container
};

struct PodPage {
  std::vector<Pod> pods = {};  // of this stateful set, by its name; in the order of the answer
  std::string next = {};       // to be asked for with `continue`; empty: this was the last page
};

/// `set`: the stateful set whose pods to return; ignores other pods with the same labels. `suffix`: the part
/// of a pod's name after the worker's name.
absl::StatusOr<PodPage> ParsePodList(const std::string& json, const std::string& set,
                                     const std::string& suffix = "");
absl::StatusOr<Pod> ParsePod(const std::string& json, const std::string& set, const std::string& suffix = "");

/// spec.replicas of a Scale.
absl::StatusOr<uint32_t> ParseReplicas(const std::string& json);
/// A merge patch of it.
std::string ReplicasPatch(uint32_t replicas);
/// Body of a DELETE that deletes only this pod and not a later one of the same name.
std::string DeleteOnly(const std::string& uid);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_KUBERNETES_OBJECTS_H_
