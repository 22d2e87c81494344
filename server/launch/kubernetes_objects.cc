#include "server/launch/kubernetes_objects.h"

#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/json_integer.h"
#include "nlohmann/json.hpp"
#include "server/launch/launch_command.h"

namespace atl {
namespace {

using nlohmann::json;
using State = LaunchedWorker::State;

const json& Child(const json& object, const char* key) {
  static const json kEmpty = json::object();
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? kEmpty : *it;
}

/// nlohmann reports a wrong type by throwing; it ends here.
template <typename T>
absl::StatusOr<T> Parsed(const std::string& text, const char* what,
                         const std::function<T(const json&)>& read) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the API server's answer is not a %s: it is not a JSON object", what));
  }
  try {
    return read(object);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the API server's answer is not a %s: %s", what, std::string(error.what())));
  }
}

/// "OOMKilled (exit code 137)".
std::string EndOf(const json& terminated) {
  if (terminated.empty()) return "";
  const std::string reason = terminated.value("reason", std::string("ended"));
  return absl::StrFormat("%s (exit code %d)", reason, terminated.value("exitCode", 0));
}

/// The worker is the pod's first container; a second one would be a sidecar.
void ReadContainer(const json& status, Pod& pod) {
  pod.worker.restarts = status.value("restartCount", 0U);
  const json& state = Child(status, "state");
  pod.worker.last_exit = EndOf(Child(Child(status, "lastState"), "terminated"));
  if (const json& ended = Child(state, "terminated"); !ended.empty()) pod.worker.last_exit = EndOf(ended);
  const json& waiting = Child(state, "waiting");
  const std::string reason = waiting.value("reason", std::string());
  if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") return;
  const std::string message = waiting.value("message", std::string());
  pod.trouble = message.empty() ? reason : absl::StrCat(reason, ": ", message);
  // The kubelet's own backoff.
  if (reason == "CrashLoopBackOff") pod.worker.state = State::kWaiting;
}

/// A pod that no node takes says so in a condition, not in a container.
void ReadScheduling(const json& status, Pod& pod) {
  for (const json& condition : Child(status, "conditions")) {
    if (condition.value("type", std::string()) != "PodScheduled") continue;
    if (condition.value("status", std::string()) != "False") continue;
    pod.trouble = absl::StrCat(condition.value("reason", std::string("not scheduled")), ": ",
                               condition.value("message", std::string()));
  }
}

State StateOf(const std::string& phase) {
  if (phase == "Running") return State::kRunning;
  return phase == "Succeeded" || phase == "Failed" ? State::kStopped : State::kStarting;
}

std::optional<Pod> ReadPod(const json& object, const std::string& set, const std::string& suffix) {
  const json& metadata = Child(object, "metadata");
  const json& status = Child(object, "status");
  Pod pod;
  pod.worker.handle = metadata.value("name", std::string());
  if (!pod.worker.handle.ends_with(suffix)) return std::nullopt;
  pod.worker.name = pod.worker.handle.substr(0, pod.worker.handle.size() - suffix.size());
  const auto ordinal = NumberOf(set + "-", pod.worker.name);
  if (!ordinal) return std::nullopt;
  pod.ordinal = *ordinal;
  pod.uid = metadata.value("uid", std::string());
  pod.worker.state = StateOf(status.value("phase", std::string("Pending")));
  const json& containers = Child(status, "containerStatuses");
  if (containers.is_array() && !containers.empty()) ReadContainer(containers.front(), pod);
  if (pod.worker.state == State::kStarting) ReadScheduling(status, pod);
  if (!Child(metadata, "deletionTimestamp").empty()) {
    pod.worker.state = State::kStopping;
    pod.trouble.clear();
  }
  return pod;
}

}  // namespace

absl::StatusOr<PodPage> ParsePodList(const std::string& text, const std::string& set,
                                     const std::string& suffix) {
  return Parsed<PodPage>(text, "PodList", [&](const json& object) {
    PodPage page;
    for (const json& item : Child(object, "items")) {
      if (auto pod = ReadPod(item, set, suffix)) page.pods.push_back(*std::move(pod));
    }
    page.next = Child(object, "metadata").value("continue", std::string());
    return page;
  });
}

absl::StatusOr<Pod> ParsePod(const std::string& text, const std::string& set, const std::string& suffix) {
  const auto pod = Parsed<std::optional<Pod>>(
      text, "Pod", [&](const json& object) { return ReadPod(object, set, suffix); });
  if (!pod.ok()) return pod.status();
  if (!pod->has_value()) return absl::NotFoundError("the API server's answer is another pod");
  return **pod;
}

absl::StatusOr<uint32_t> ParseReplicas(const std::string& text) {
  return Parsed<uint32_t>(text, "Scale", [](const json& object) {
    return JsonInteger<uint32_t>(Child(object, "spec"), "replicas", 0);  // 0 is left out by the server
  });
}

std::string ReplicasPatch(uint32_t replicas) { return json{{"spec", {{"replicas", replicas}}}}.dump(); }

std::string DeleteOnly(const std::string& uid) {
  return json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}}.dump();
}

}  // namespace atl
