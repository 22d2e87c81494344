#include "server/launch/kubernetes_launcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "server/launch/launch_command.h"

namespace atl {
namespace {

constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr char kJson[] = "application/json";
constexpr int kPodsInOnePage = 250;

bool Runs(const Pod& pod) { return pod.worker.state == LaunchedWorker::State::kRunning; }
bool SameLife(const Pod& a, const Pod& b) { return a.uid == b.uid && a.worker.restarts == b.worker.restarts; }

}  // namespace

std::vector<Launcher::Event> PodEvents(const std::map<uint32_t, Pod>& before,
                                       const std::map<uint32_t, Pod>& after) {
  std::vector<Launcher::Event> events;
  for (const auto& [ordinal, old] : before) {
    const auto now = after.find(ordinal);
    const bool ended = now == after.end() || !SameLife(old, now->second) || !Runs(now->second);
    if (!Runs(old) || !ended) continue;
    const bool same_pod = now != after.end() && now->second.uid == old.uid;
    const std::string how = same_pod && !now->second.worker.last_exit.empty() ? now->second.worker.last_exit
                            : same_pod                                        ? "its pod is being ended"
                                                                              : "its pod is gone";
    events.push_back({.launched = false,
                      .name = old.worker.name,
                      .message = absl::StrFormat("%s ended: %s", old.worker.name, how)});
  }
  for (const auto& [ordinal, pod] : after) {
    const auto old = before.find(ordinal);
    const bool ran = old != before.end() && Runs(old->second) && SameLife(old->second, pod);
    if (!Runs(pod) || ran) continue;
    events.push_back({.launched = true,
                      .name = pod.worker.name,
                      .message = absl::StrFormat("%s started (pod %s, restart %d)", pod.worker.name,
                                                 pod.uid.substr(0, 8), pod.worker.restarts)});
  }
  return events;
}

absl::StatusOr<std::unique_ptr<KubernetesLauncher>> KubernetesLauncher::Create(
    KubernetesLauncherOptions options, Logger log) {
  auto sleeper = std::make_unique<InterruptibleSleeper>();
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<KubernetesApi> api,
                         KubernetesApi::Create(options.api, sleeper.get()));
  if (options.name_space.empty()) {
    ATOLL_ASSIGN_OR_RETURN(options.name_space, api->OwnNamespace());
  }
  return std::unique_ptr<KubernetesLauncher>(
      new KubernetesLauncher(std::move(options), std::move(sleeper), std::move(api), std::move(log)));
}

KubernetesLauncher::KubernetesLauncher(KubernetesLauncherOptions options,
                                       std::unique_ptr<InterruptibleSleeper> sleeper,
                                       std::unique_ptr<KubernetesApi> api, Logger log)
    : options_(std::move(options)),
      pod_suffix_(options_.set_per_worker ? "-0" : ""),
      sleeper_(std::move(sleeper)),
      api_(std::move(api)),
      log_(std::move(log)) {
  looking_ = std::make_unique<PeriodicTask>("launcher", options_.look_every, [this] { Look(); });
  looking_->Wake();
}

KubernetesLauncher::~KubernetesLauncher() { Shutdown(); }

std::string KubernetesLauncher::SetOf(uint32_t ordinal) const {
  return absl::StrFormat("%s-%d", options_.stateful_set, ordinal);
}

std::string KubernetesLauncher::ScalePath(const std::string& set) const {
  return absl::StrFormat("/apis/apps/v1/namespaces/%s/statefulsets/%s/scale", options_.name_space, set);
}

std::string KubernetesLauncher::PodPath(const WorkerName& name) const {
  return absl::StrFormat("/api/v1/namespaces/%s/pods/%s%s", options_.name_space, name, pod_suffix_);
}

absl::StatusOr<uint32_t> KubernetesLauncher::SetReplicas(const std::string& set, uint32_t replicas,
                                                         uint64_t order) {
  const auto overtaken = [this, order] {
    MutexLock lock(&mutex_);
    return orders_ != order;
  };
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, api_->Call({.method = "PATCH",
                                                               .path = ScalePath(set),
                                                               .content_type = kMergePatch,
                                                               .body = ReplicasPatch(replicas),
                                                               .verb = "patch",
                                                               .resource = "statefulsets/scale",
                                                               .api_group = "apps",
                                                               .name_space = options_.name_space,
                                                               .overtaken = overtaken}));
  return ParseReplicas(answer);
}

absl::StatusOr<std::vector<uint32_t>> KubernetesLauncher::GetSets() {
  std::vector<uint32_t> sets;
  while (true) {
    const auto replicas = GetReplicas(SetOf(static_cast<uint32_t>(sets.size())));
    // A Role that names the sets answers "forbidden" for a missing one.
    const bool end =
        absl::IsNotFound(replicas.status()) || (absl::IsPermissionDenied(replicas.status()) && !sets.empty());
    if (end) return sets;
    if (!replicas.ok()) return replicas.status();
    sets.push_back(*replicas);
  }
}

absl::StatusOr<uint32_t> KubernetesLauncher::ScaleSets(uint32_t target, uint64_t order) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<uint32_t> sets, GetSets());
  if (target > sets.size()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%d workers are wanted, but only %d have a StatefulSet with its own identity; create "
                        "the identity and the set of %s first (k8s/README.md, \"TLS\")",
                        target, sets.size(), SetOf(static_cast<uint32_t>(sets.size()))));
  }
  for (uint32_t ordinal = 0; ordinal < sets.size(); ++ordinal) {
    const uint32_t wanted = ordinal < target ? 1 : 0;
    if (sets[ordinal] == wanted) continue;
    ATOLL_RETURN_IF_ERROR(SetReplicas(SetOf(ordinal), wanted, order).status());
  }
  return target;
}

void KubernetesLauncher::Begin(uint32_t target) {
  {
    MutexLock lock(&mutex_);
    first_target_ = target;
  }
  looking_->Wake();
}

absl::Status KubernetesLauncher::Scale(uint32_t target) {
  uint64_t order = 0;
  {
    MutexLock lock(&mutex_);
    order = ++orders_;
    // They are the wanted ones already: the drained worker finishes its round before its replica goes.
    if (DrainsHighest() && target == *released_ && !first_target_) return absl::OkStatus();
    ++scaling_;
  }
  const absl::Status scaled = ScaleAs(target, order);
  MutexLock lock(&mutex_);
  --scaling_;
  return scaled;
}

absl::Status KubernetesLauncher::ScaleAs(uint32_t target, uint64_t order) {
  ATOLL_ASSIGN_OR_RETURN(const uint32_t replicas, options_.set_per_worker
                                                      ? ScaleSets(target, order)
                                                      : SetReplicas(options_.stateful_set, target, order));
  {
    MutexLock lock(&mutex_);
    if (orders_ != order) return absl::OkStatus();  // the newer one says what is wanted
    ++scales_;
    target_ = replicas;
    released_.reset();  // this is newer
    left_ = false;
    first_target_.reset();
  }
  looking_->Wake();
  return absl::OkStatus();
}

bool KubernetesLauncher::DrainsHighest() const { return released_ && *released_ + 1 == target_; }

absl::StatusOr<std::string> KubernetesLauncher::Release(const WorkerName& name) {
  const auto ordinal = NumberOf(options_.stateful_set + "-", name);
  MutexLock lock(&mutex_);
  if (!ordinal || !looked_ || *ordinal >= target_) return std::string();
  if (*ordinal + 1 == target_) {
    released_ = *ordinal;
    left_ = false;
    return absl::StrFormat("when it has left, the StatefulSet is scaled to %d", *ordinal);
  }
  return absl::StrFormat(
      "the cluster restarts its pod: a StatefulSet always runs the lowest numbers, so only %s-%d can be "
      "removed. To run one worker less, use `atollctl workers scale %d`",
      options_.stateful_set, target_ - 1, target_ - 1);
}

bool KubernetesLauncher::IsReleased(const WorkerName& name) const {
  const auto ordinal = NumberOf(options_.stateful_set + "-", name);
  MutexLock lock(&mutex_);
  return ordinal && released_ == ordinal && DrainsHighest();
}

void KubernetesLauncher::Reclaim(const WorkerName& name) {
  const auto ordinal = NumberOf(options_.stateful_set + "-", name);
  MutexLock lock(&mutex_);
  if (!ordinal || released_ != ordinal) return;
  // A look may be lowering the replicas right now; the next one asks for them again.
  if (left_) first_target_ = target_;
  ++orders_;
  released_.reset();
  left_ = false;
}

void KubernetesLauncher::Left(const WorkerName& name) {
  const auto ordinal = NumberOf(options_.stateful_set + "-", name);
  {
    MutexLock lock(&mutex_);
    if (!ordinal || released_ != ordinal) return;
    left_ = true;
  }
  looking_->Wake();
}

void KubernetesLauncher::Lost(const WorkerName& name, bool restart) {
  if (!restart) return Left(name);
  if (!Owns(name)) return;
  {
    MutexLock lock(&mutex_);
    lost_.insert(name);
  }
  looking_->Wake();
}

void KubernetesLauncher::RestartLost() {
  std::set<WorkerName> lost;
  {
    MutexLock lock(&mutex_);
    lost.swap(lost_);
  }
  for (const WorkerName& name : lost) {
    const absl::Status restarted = Restart(name);
    if (restarted.ok() || absl::IsCancelled(restarted)) continue;
    log_.Warning("the pod of a worker that does not answer could not be deleted",
                 {{"worker", name}, {"error", restarted}});
  }
}

absl::Status KubernetesLauncher::GiveUpLeft() {
  std::optional<uint32_t> replicas;
  uint64_t order = 0;
  {
    MutexLock lock(&mutex_);
    order = orders_;
    if (!left_ || scaling_ > 0) return absl::OkStatus();
    // Somebody scaled the set meanwhile: that is newer.
    if (DrainsHighest()) replicas = released_;
  }
  if (replicas) return ScaleAs(*replicas, order);
  MutexLock lock(&mutex_);
  released_.reset();
  left_ = false;
  return absl::OkStatus();
}

absl::StatusOr<Pod> KubernetesLauncher::GetPod(const WorkerName& name) {
  ATOLL_ASSIGN_OR_RETURN(
      const std::string answer,
      api_->Call(
          {.path = PodPath(name), .verb = "get", .resource = "pods", .name_space = options_.name_space}));
  return ParsePod(answer, options_.stateful_set, pod_suffix_);
}

absl::Status KubernetesLauncher::Restart(const WorkerName& name) {
  if (!NumberOf(options_.stateful_set + "-", name)) {
    return absl::NotFoundError(
        absl::StrFormat("%s is not a worker of this launcher: its workers are named %s-0 and so on", name,
                        options_.stateful_set));
  }
  ATOLL_ASSIGN_OR_RETURN(const Pod pod, GetPod(name));
  const auto deleted = api_->Call({.method = "DELETE",
                                   .path = PodPath(name),
                                   .content_type = kJson,
                                   .body = DeleteOnly(pod.uid),
                                   .verb = "delete",
                                   .resource = "pods",
                                   .name_space = options_.name_space});
  looking_->Wake();
  // A repeated DELETE whose first answer was lost finds no pod, or the next one, which the uid protects.
  if (deleted.ok() || absl::IsNotFound(deleted.status())) return absl::OkStatus();
  if (absl::IsAborted(deleted.status())) {
    const auto now = GetPod(name);
    if (absl::IsNotFound(now.status()) || (now.ok() && now->uid != pod.uid)) return absl::OkStatus();
  }
  return deleted.status();
}

absl::StatusOr<uint32_t> KubernetesLauncher::GetReplicas(const std::string& set) {
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, api_->Call({.path = ScalePath(set),
                                                               .verb = "get",
                                                               .resource = "statefulsets/scale",
                                                               .api_group = "apps",
                                                               .name_space = options_.name_space}));
  return ParseReplicas(answer);
}

absl::StatusOr<uint32_t> KubernetesLauncher::GetTarget() {
  if (!options_.set_per_worker) return GetReplicas(options_.stateful_set);
  ATOLL_ASSIGN_OR_RETURN(const std::vector<uint32_t> sets, GetSets());
  return static_cast<uint32_t>(std::count_if(sets.begin(), sets.end(), [](uint32_t n) { return n > 0; }));
}

absl::StatusOr<KubernetesLauncher::Pods> KubernetesLauncher::ListPods() {
  Pods pods;
  std::string next;
  do {
    std::string path =
        absl::StrFormat("/api/v1/namespaces/%s/pods?labelSelector=%s&limit=%d", options_.name_space,
                        PercentEncoded(options_.selector), kPodsInOnePage);
    if (!next.empty()) absl::StrAppend(&path, "&continue=", PercentEncoded(next));
    ATOLL_ASSIGN_OR_RETURN(
        const std::string answer,
        api_->Call({.path = path, .verb = "list", .resource = "pods", .name_space = options_.name_space}));
    ATOLL_ASSIGN_OR_RETURN(PodPage page, ParsePodList(answer, options_.stateful_set, pod_suffix_));
    for (Pod& pod : page.pods) pods.insert_or_assign(pod.ordinal, std::move(pod));
    next = std::move(page.next);
  } while (!next.empty());
  return pods;
}

void KubernetesLauncher::Note(const absl::Status& failure) {
  if (absl::IsCancelled(failure)) return;
  bool new_error = false;
  {
    MutexLock lock(&mutex_);
    const std::string error(failure.message());
    new_error = error != error_;
    error_ = error;
  }
  // Once for each cause, not every ten seconds.
  if (new_error) {
    log_.Warning("the workers' pods cannot be listed",
                 {{"error", failure}, {"next_attempt_in_s", ToSeconds(options_.look_every)}});
  }
}

absl::Status KubernetesLauncher::AskForFirstTarget() {
  std::optional<uint32_t> target;
  uint64_t order = 0;
  {
    MutexLock lock(&mutex_);
    if (scaling_ == 0) target = first_target_;
    order = orders_;
  }
  return target ? ScaleAs(*target, order) : absl::OkStatus();
}

uint64_t KubernetesLauncher::Scales() const {
  MutexLock lock(&mutex_);
  return scales_;
}

void KubernetesLauncher::Look() {
  const absl::Status asked = AskForFirstTarget();
  // A number that cannot be granted is no reason not to look at the pods.
  if (!asked.ok() && !absl::IsFailedPrecondition(asked)) return Note(asked);
  RestartLost();
  const absl::Status given_up = GiveUpLeft();
  if (!given_up.ok()) return Note(given_up);
  const uint64_t scales = Scales();
  const auto replicas = GetTarget();
  if (!replicas.ok()) return Note(replicas.status());
  auto pods = ListPods();
  if (!pods.ok()) return Note(pods.status());
  std::vector<Event> events;
  EventSink sink;
  {
    MutexLock lock(&mutex_);
    // What was there before the first look started in an earlier life of ours.
    if (looked_) events = PodEvents(pods_, *pods);
    looked_ = true;
    // A scale that ended since these replicas were read is newer than they are.
    if (scales_ == scales) target_ = *replicas;
    pods_ = *std::move(pods);
    if (asked.ok()) error_.clear();
    sink = sink_;
  }
  if (!asked.ok()) Note(asked);
  if (!sink) return;
  for (const Event& event : events) sink(event);
}

LauncherView KubernetesLauncher::view() const {
  LauncherView view;
  view.kind = "kubernetes";
  MutexLock lock(&mutex_);
  // One that was let go is not wanted any more, though its replica stays until it has left.
  const bool drains = DrainsHighest();
  view.target = drains ? *released_ : target_;
  if (drains) view.drained.push_back(NumberedName(options_.stateful_set + "-", *released_));
  for (uint32_t ordinal = 0; ordinal < view.target; ++ordinal) {
    view.wanted.push_back(NumberedName(options_.stateful_set + "-", ordinal));
  }
  size_t troubled = 0;
  for (const auto& [ordinal, pod] : pods_) {
    view.workers.push_back(pod.worker);
    if (drains && ordinal == *released_ && Runs(pod)) {
      view.workers.back().state = LaunchedWorker::State::kDraining;
    }
    if (!pod.trouble.empty() && troubled++ == 0) view.error = absl::StrCat(pod.worker.name, " ", pod.trouble);
  }
  if (troubled > 1) view.error += absl::StrFormat(" (and %d more)", troubled - 1);
  if (!error_.empty()) {
    view.error = absl::StrFormat("%s; retrying every %s", error_, HumanDuration(options_.look_every));
  }
  return view;
}

bool KubernetesLauncher::Owns(const WorkerName& name) const {
  const auto ordinal = NumberOf(options_.stateful_set + "-", name);
  MutexLock lock(&mutex_);
  // Until the cluster has answered once, the name alone decides.
  return ordinal && (!looked_ || pods_.contains(*ordinal) || *ordinal < target_);
}

void KubernetesLauncher::SetEventSink(EventSink sink) {
  MutexLock lock(&mutex_);
  sink_ = std::move(sink);
}

void KubernetesLauncher::Shutdown() {
  sleeper_->Interrupt();
  looking_->Stop();
}

}  // namespace atl
