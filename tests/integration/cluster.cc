#include "tests/integration/cluster.h"

#include <stdlib.h>

#include <random>
#include <thread>

#include "absl/strings/str_format.h"
#include "cli/rpc_client.h"
#include "common/file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "tests/paths.h"

namespace atl {
namespace {

std::string Program(const std::string& name) { return std::string(ATOLL_BIN_DIR) + "/" + name; }

std::string Tail(const std::string& text, size_t bytes) {
  return text.size() > bytes ? text.substr(text.size() - bytes) : text;
}

}  // namespace

std::string PseudoEnglish(size_t bytes, uint32_t seed) {
  static constexpr const char* kWords[] = {"the",    "reef",   "of",   "coral", "grows", "round",
                                           "a",      "lagoon", "and",  "each",  "wave",  "that",
                                           "comes",  "from",   "open", "sea",   "adds",  "to",
                                           "island", "sand",   "slow", "years", "until", "palms"};
  std::mt19937 rng(seed);
  std::string text;
  while (text.size() < bytes) {
    text += kWords[rng() % std::size(kWords)];
    text += rng() % 9 == 0 ? ".\n" : " ";
  }
  text.resize(bytes);
  return text;
}

std::string TinyConfig(const TinyRun& run) {
  return absl::StrFormat(
      "run: {name: tiny, workers: %d, rounds: %d, seed: 7}\n"
      "model:\n  gpt: {layers: 2, heads: 2, width: 32, context: 32, vocabulary: 256}\n"
      "data: {tokenizer: bytes, partitions: %d}\n"  // as the PyTorch reference reads them
      "inner: {steps: %d, learning_rate: 0.003, warmup_steps: 5, batch: 4}\n"
      "outer: %s\nround: %s\ncodec: %s\nevaluation: %s\ncheckpoint: %s\nsync: %s\n",
      run.workers, run.rounds, run.workers, run.inner_steps, run.outer, run.round, run.codec, run.evaluation,
      run.checkpoint, run.sync);
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Create(const std::string& config, size_t text_bytes) {
  char pattern[] = "/tmp/atoll-cluster-XXXXXX";
  if (mkdtemp(pattern) == nullptr) return absl::InternalError("cannot make a temporary folder");
  std::unique_ptr<Cluster> cluster(new Cluster(pattern));
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(cluster->PathOf("run.yaml"), config));
  ATOLL_RETURN_IF_ERROR(cluster->MakeTokens(text_bytes));
  return cluster;
}

Cluster::~Cluster() {
  workers_.clear();
  coordinator_.reset();
  RemoveAll(folder_).IgnoreError();
}

absl::Status Cluster::MakeTokens(size_t text_bytes) {
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(PathOf("text.txt"), PseudoEnglish(text_bytes, 1)));
  const Finished made = RunToEnd({Program("atoll-data"), "tokenize", "--tokenizer", "bytes", "--out",
                                  PathOf("tokens"), PathOf("text.txt")},
                                 Seconds(60));
  if (made.exit_code != 0) return absl::InternalError("atoll-data failed: " + made.output);
  return absl::OkStatus();
}

absl::Status Cluster::StartCoordinator(const std::vector<std::string>& extra) {
  coordinator_.reset();
  ATOLL_RETURN_IF_ERROR(RemoveFile(PathOf("ports.json")));
  std::vector<std::string> arguments = {Program("atoll-coordinator"),
                                        "--config",
                                        PathOf("run.yaml"),
                                        "--data-dir",
                                        PathOf("coordinator"),
                                        "--listen",
                                        data_address_,
                                        "--admin-listen",
                                        admin_address_,
                                        "--metrics-listen",
                                        metrics_address_,
                                        "--port-file",
                                        PathOf("ports.json")};
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  ATOLL_ASSIGN_OR_RETURN(coordinator_, Process::Start(arguments, PathOf("coordinator.log")));
  const auto deadline = std::chrono::steady_clock::now() + Seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    if (!coordinator_->running())
      return absl::InternalError("the coordinator ended: " + Tail(Log("coordinator"), 2000));
    if (ReadPorts().ok()) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::DeadlineExceededError("the coordinator did not serve: " + Tail(Log("coordinator"), 2000));
}

absl::Status Cluster::ReadPorts() {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(PathOf("ports.json")));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::UnavailableError("not written yet");
  data_address_ = json.value("data", "");
  admin_address_ = json.value("admin", "");
  metrics_address_ = json.value("metrics", "");
  return absl::OkStatus();
}

absl::Status Cluster::StartWorker(const std::string& name, const std::vector<std::string>& extra) {
  std::vector<std::string> arguments = {Program("atoll-worker"),
                                        "--coordinator",
                                        data_address_,
                                        "--name",
                                        name,
                                        "--data",
                                        PathOf("tokens"),
                                        "--state-dir",
                                        PathOf("state-" + name),
                                        "--threads",
                                        "1",
                                        "--device",
                                        "cpu"};
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  ATOLL_ASSIGN_OR_RETURN(workers_[name], Process::Start(arguments, PathOf(name + ".log")));
  return absl::OkStatus();
}

absl::StatusOr<v1::GetStatusReply> Cluster::Status() {
  return AdminClient(admin_address_, Seconds(2)).GetStatus(1000);
}

absl::StatusOr<v1::ListWorkersReply> Cluster::Workers() {
  return AdminClient(admin_address_, Seconds(2)).ListWorkers(true);
}

absl::Status Cluster::WaitUntil(const std::string& what, Duration timeout,
                                const std::function<bool(const v1::GetStatusReply&)>& done) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string last = "none";
  while (std::chrono::steady_clock::now() < deadline) {
    const auto status = Status();
    if (status.ok() && done(*status)) return absl::OkStatus();
    last = status.ok() ? status->ShortDebugString() : status.status().ToString();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string message = absl::StrFormat("waited in vain for %s; last status: %s\ncoordinator: %s", what,
                                        Tail(last, 3000), Tail(Log("coordinator"), 3000));
  for (const auto& [name, process] : workers_) message += "\n" + name + ": " + Tail(Log(name), 1500);
  return absl::DeadlineExceededError(message);
}

absl::Status Cluster::WaitForVersion(uint64_t version, Duration timeout) {
  return WaitUntil(absl::StrFormat("version %d", version), timeout,
                   [version](const v1::GetStatusReply& status) {
                     return status.fragments_size() > 0 && status.fragments(0).version() >= version;
                   });
}

absl::Status Cluster::WaitForFinish(Duration timeout) {
  return WaitUntil("the end of the run and its evaluation", timeout, [](const v1::GetStatusReply& status) {
    const int n = status.evaluations_size();
    return status.state() == v1::RUN_STATE_FINISHED && n > 0 &&
           status.evaluations(n - 1).version() == status.fragments(0).version();
  });
}

std::string Cluster::Log(const std::string& process) const {
  return ReadFile(PathOf(process + ".log")).value_or("");
}

}  // namespace atl
