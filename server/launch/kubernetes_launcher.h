#ifndef ATOLL_SERVER_LAUNCH_KUBERNETES_LAUNCHER_H_
#define ATOLL_SERVER_LAUNCH_KUBERNETES_LAUNCHER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/periodic_task.h"
#include "common/sleeper.h"
#include "server/launch/kubernetes_api.h"
#include "server/launch/kubernetes_objects.h"
#include "server/launch/launcher.h"

namespace atl {

struct KubernetesLauncherOptions {
  KubernetesApiOptions api;
  std::string name_space;  // empty: the service account's own
  std::string stateful_set = "atoll-worker";
  // Each worker is a set of its own with one pod: the set is named stateful_set-0 and so on, as the worker,
  // and its pod has "-0" after that. Pods of one set share their volumes, and so their keys.
  bool set_per_worker = false;
  std::string selector = "app.kubernetes.io/name=atoll-worker";  // labels of its pods
  Duration look_every = Seconds(10);
};

/// Runs workers as pods of one StatefulSet; the cluster starts, places and restarts them. A worker has the
/// name of its pod. The wanted workers are the set's replicas, which always have the lowest numbers. So an
/// operator can drain only the worker with the highest number; the replicas are lowered when it has left.
/// Scale patches the set's replicas; Restart deletes the pod, and the set creates a new one. A thread lists
/// the pods at intervals, for the view and the events. The service account must be allowed to get and patch
/// statefulsets/scale and to get, list and delete pods. docs/reference/launchers.md
///
/// With one set per worker, Scale patches each set to one or zero replicas. FailedPrecondition, without any
/// change, if there are fewer sets than wanted workers.
///
/// Scale and Restart block while the API server is asked (KubernetesApi says with which errors).
class KubernetesLauncher final : public Launcher {
 public:
  /// InvalidArgument if the API server's address is unknown; Unauthenticated without a token. Makes no call
  /// yet.
  static absl::StatusOr<std::unique_ptr<KubernetesLauncher>> Create(KubernetesLauncherOptions options,
                                                                    Logger log);
  ~KubernetesLauncher() override;

  absl::Status Scale(uint32_t target) override;
  /// Requests the number repeatedly until it is granted or Scale requests another number.
  void Begin(uint32_t target) override;
  absl::StatusOr<std::string> Release(const WorkerName& name) override;
  bool IsReleased(const WorkerName& name) const override;
  void Reclaim(const WorkerName& name) override;
  void Left(const WorkerName& name) override;
  /// The next look does it.
  void Lost(const WorkerName& name, bool restart) override;
  absl::Status Restart(const WorkerName& name) override;
  LauncherView view() const override;
  bool Owns(const WorkerName& name) const override;
  /// Only stops the thread: the pods belong to the cluster.
  void Shutdown() override;
  void SetEventSink(EventSink sink) override;

 private:
  using Pods = std::map<uint32_t, Pod>;  // by ordinal
  KubernetesLauncher(KubernetesLauncherOptions options, std::unique_ptr<InterruptibleSleeper> sleeper,
                     std::unique_ptr<KubernetesApi> api, Logger log);
  std::string SetOf(uint32_t ordinal) const;
  std::string ScalePath(const std::string& set) const;
  std::string PodPath(const WorkerName& name) const;
  absl::Status AskForFirstTarget();
  absl::Status GiveUpLeft();
  void RestartLost();
  absl::StatusOr<Pod> GetPod(const WorkerName& name);
  absl::StatusOr<uint32_t> GetReplicas(const std::string& set);
  absl::StatusOr<uint32_t> SetReplicas(const std::string& set, uint32_t replicas, uint64_t order);
  absl::StatusOr<std::vector<uint32_t>> GetSets();  // the replicas of each worker's set, in order
  absl::StatusOr<uint32_t> ScaleSets(uint32_t target, uint64_t order);
  /// Cancelled, or without an effect on what is shown, when an operator asked for something since `order`.
  absl::Status ScaleAs(uint32_t target, uint64_t order);
  absl::StatusOr<uint32_t> GetTarget();
  absl::StatusOr<Pods> ListPods();
  uint64_t Scales() const;
  bool DrainsHighest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // released_ is not overtaken
  void Look();
  void Note(const absl::Status& failure);

  // Constant after construction.
  const KubernetesLauncherOptions options_;
  const std::string pod_suffix_;  // of a pod's name, after the worker's
  const std::unique_ptr<InterruptibleSleeper> sleeper_;
  const std::unique_ptr<KubernetesApi> api_;
  const Logger log_;

  mutable Mutex mutex_;
  EventSink sink_ ABSL_GUARDED_BY(mutex_);
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;  // pods_ and target_ are from the cluster
  uint32_t target_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t scales_ ABSL_GUARDED_BY(mutex_) = 0;  // how many ended well
  uint64_t orders_ ABSL_GUARDED_BY(mutex_) = 0;  // of operators; what a look asks for must not overtake them
  int scaling_ ABSL_GUARDED_BY(mutex_) = 0;      // orders under way: looks ask for nothing
  std::optional<uint32_t> first_target_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint32_t> released_ ABSL_GUARDED_BY(mutex_);  // replicas when the drained worker has left
  bool left_ ABSL_GUARDED_BY(mutex_) = false;                 // it has
  std::set<WorkerName> lost_ ABSL_GUARDED_BY(mutex_);         // to be restarted
  Pods pods_ ABSL_GUARDED_BY(mutex_);
  std::string error_ ABSL_GUARDED_BY(mutex_);  // of the last look

  std::unique_ptr<PeriodicTask> looking_;
};

/// What happened to the pods between two looks.
std::vector<Launcher::Event> PodEvents(const std::map<uint32_t, Pod>& before,
                                       const std::map<uint32_t, Pod>& after);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_KUBERNETES_LAUNCHER_H_
