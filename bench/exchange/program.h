#ifndef ATOLL_BENCH_EXCHANGE_PROGRAM_H_
#define ATOLL_BENCH_EXCHANGE_PROGRAM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/integration/process.h"

namespace atl {

/// The real coordinator program on a fresh folder, killed and removed with this.
class CoordinatorProgram {
 public:
  /// Makes its folder in `parent`; `yaml` is the run's configuration. Unavailable, with its log, when it does
  /// not serve.
  static absl::StatusOr<std::unique_ptr<CoordinatorProgram>> Start(const std::string& program,
                                                                   const std::string& parent,
                                                                   const std::string& yaml);
  ~CoordinatorProgram();

  pid_t pid() const { return process_->pid(); }
  const std::string& data_address() const { return data_address_; }
  const std::string& metrics_address() const { return metrics_address_; }

  /// Bytes: what it holds now beside mapped files, and the most that was resident, files included.
  absl::StatusOr<uint64_t> AnonymousMemory() const { return MemoryLine("RssAnon:"); }
  absl::StatusOr<uint64_t> PeakMemory() const { return MemoryLine("VmHWM:"); }

 private:
  explicit CoordinatorProgram(std::string folder) : folder_(std::move(folder)) {}
  absl::Status WaitUntilItServes();
  absl::StatusOr<uint64_t> MemoryLine(const std::string& name) const;

  const std::string folder_;
  std::unique_ptr<Process> process_;
  std::string data_address_;
  std::string metrics_address_;
};

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_PROGRAM_H_
