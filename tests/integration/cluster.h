#ifndef ATOLL_TESTS_INTEGRATION_CLUSTER_H_
#define ATOLL_TESTS_INTEGRATION_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"
#include "common/clock.h"
#include "tests/integration/process.h"

namespace atl {

/// A small run in a folder of its own: real token files, one real coordinator, real workers, real sockets.
/// Everything is killed and removed with it. Not thread-safe.
class Cluster {
 public:
  /// `config` is the run's YAML. Makes token files of `text_bytes` bytes of pseudo-English.
  static absl::StatusOr<std::unique_ptr<Cluster>> Create(const std::string& config,
                                                         size_t text_bytes = 200'000);
  ~Cluster();

  const std::string& folder() const { return folder_; }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  /// Starts atoll-coordinator (on the ports of its first start, if it was started before) and waits until it
  /// serves.
  absl::Status StartCoordinator(const std::vector<std::string>& extra = {});
  absl::Status StartWorker(const std::string& name, const std::vector<std::string>& extra = {});
  Process& coordinator() { return *coordinator_; }
  Process& worker(const std::string& name) { return *workers_.at(name); }

  const std::string& data_address() const { return data_address_; }
  const std::string& admin_address() const { return admin_address_; }
  const std::string& metrics_address() const { return metrics_address_; }

  absl::StatusOr<v1::GetStatusReply> Status();
  absl::StatusOr<v1::ListWorkersReply> Workers();
  /// Looks every 50 ms until `done` says so; a coordinator that is away is not an error. DeadlineExceeded
  /// names `what` and shows the last status and the ends of the logs.
  absl::Status WaitUntil(const std::string& what, Duration timeout,
                         const std::function<bool(const v1::GetStatusReply&)>& done);
  absl::Status WaitForVersion(uint64_t version, Duration timeout);
  absl::Status WaitForFinish(Duration timeout);

  std::string Log(const std::string& process) const;

 private:
  explicit Cluster(std::string folder) : folder_(std::move(folder)) {}
  absl::Status MakeTokens(size_t text_bytes);
  absl::Status ReadPorts();

  const std::string folder_;
  std::string data_address_ = "127.0.0.1:0";
  std::string admin_address_ = "127.0.0.1:0";
  std::string metrics_address_ = "127.0.0.1:0";
  std::unique_ptr<Process> coordinator_;
  std::map<std::string, std::unique_ptr<Process>> workers_;
};

/// The YAML of a tiny run that trains in seconds.
struct TinyRun {
  uint32_t workers = 2;
  uint32_t rounds = 4;
  uint32_t inner_steps = 5;
  std::string outer = "{optimizer: nesterov, learning_rate: 0.7, momentum: 0.9}";
  std::string round = "{deadline_s: 60, grace_s: 5, lease_s: 3}";
  std::string codec = "{push: fp32, pull_delta: none}";
  std::string checkpoint = "{keep_versions: 2, shards: 2}";
  std::string evaluation = "{every: 2, batches: 4}";
  std::string sync = "{mode: blocking}";
};
std::string TinyConfig(const TinyRun& run);

/// Deterministic text that a model can learn something from.
std::string PseudoEnglish(size_t bytes, uint32_t seed);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CLUSTER_H_
