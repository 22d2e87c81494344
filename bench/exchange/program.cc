#include "bench/exchange/program.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {

absl::StatusOr<std::unique_ptr<CoordinatorProgram>> CoordinatorProgram::Start(const std::string& program,
                                                                              const std::string& parent,
                                                                              const std::string& yaml) {
  const std::string folder = absl::StrCat(parent, "/atoll-bench.", ::getpid());
  ATOLL_RETURN_IF_ERROR(RemoveAll(folder));
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  std::unique_ptr<CoordinatorProgram> started(new CoordinatorProgram(folder));
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(folder + "/run.yaml", yaml));
  ATOLL_ASSIGN_OR_RETURN(
      started->process_,
      Process::Start({program, "--config", folder + "/run.yaml", "--data-dir", folder + "/data", "--listen",
                      "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                      "--port-file", folder + "/ports"},
                     folder + "/log"));
  ATOLL_RETURN_IF_ERROR(started->WaitUntilItServes());
  return started;
}

CoordinatorProgram::~CoordinatorProgram() {
  process_.reset();
  RemoveAll(folder_).IgnoreError();
}

absl::Status CoordinatorProgram::WaitUntilItServes() {
  for (int i = 0; i < 6000 && process_->running(); ++i) {
    const auto ports = nlohmann::json::parse(ReadFile(folder_ + "/ports").value_or(""), nullptr, false);
    if (!ports.is_discarded() && ports.contains("data")) {
      data_address_ = ports["data"].get<std::string>();
      metrics_address_ = ports["metrics"].get<std::string>();
      return absl::OkStatus();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::UnavailableError(
      absl::StrCat("the coordinator does not serve: ", ReadFile(folder_ + "/log").value_or("")));
}

absl::StatusOr<uint64_t> CoordinatorProgram::MemoryLine(const std::string& name) const {
  std::ifstream status(absl::StrFormat("/proc/%d/status", process_->pid()));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(name.size())) << 10;
  }
  return absl::NotFoundError("the kernel does not tell the coordinator's memory");
}

}  // namespace atl
