#ifndef ATOLL_TESTS_INTEGRATION_CRASH_VICTIM_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_VICTIM_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/contribution.h"
#include "storage/run_store.h"
#include "tests/integration/process.h"

namespace atl {

/// The real atoll-coordinator on one data directory, on the same ports in every life.
class Victim {
 public:
  /// `more`: arguments beside the usual ones. `folder` has the run.yaml.
  explicit Victim(std::string folder, std::vector<std::string> more = {})
      : folder_(std::move(folder)), more_(std::move(more)) {}

  /// `fault`: ATOLL_FAULT of this life; empty: none. Returns once it serves, or is dead already.
  absl::Status Start(const std::string& fault);
  bool running() { return process_ != nullptr && process_->running(); }
  void Kill() { process_->Kill(); }
  /// Whether it died within `timeout`.
  bool AwaitDeath(Duration timeout) { return process_->Wait(timeout).has_value(); }
  /// SIGTERM; its exit code.
  int Stop();

  const std::string& data_address() const { return data_address_; }
  const std::string& admin_address() const { return admin_address_; }
  std::string data_dir() const { return folder_ + "/data"; }
  std::string log() const;
  /// Of the newest checkpoint that can be restored; NotFound.
  absl::StatusOr<std::string> NewestCheckpoint();
  /// Through the admin port. OK: it is promised.
  absl::StatusOr<std::vector<Version>> Restore(const std::string& checkpoint);

 private:
  absl::Status ReadPorts();

  const std::string folder_;
  const std::vector<std::string> more_;
  std::unique_ptr<Process> process_;
  std::string data_address_ = "127.0.0.1:0";
  std::string admin_address_ = "127.0.0.1:0";
};

/// What is on the disk of a dead coordinator, read without changing it.
struct Remains {
  Recovery recovery;
  std::map<std::string, Version> checkpoints;  // head by name, of those that are finished
};
/// nullopt: it died before there was a run with parameters.
absl::StatusOr<std::optional<Remains>> Inspect(const std::string& data_dir);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_VICTIM_H_
