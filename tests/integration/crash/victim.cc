#include "tests/integration/crash/victim.h"

#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "atoll/v1/admin.grpc.pb.h"
#include "client/rpc/channel.h"
#include "common/file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "storage/rocksdb/checkpoint_folder.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/rocksdb/load_run.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr Duration kStartPatience = Seconds(60);

}  // namespace

absl::Status Victim::Start(const std::string& fault) {
  process_.reset();
  const std::string ports = folder_ + "/ports.json";
  ATOLL_RETURN_IF_ERROR(RemoveFile(ports));
  std::vector<std::string> arguments = {"/usr/bin/env",
                                        "ATOLL_FAULT=" + fault,
                                        std::string(ATOLL_BIN_DIR) + "/atoll-coordinator",
                                        "--config",
                                        folder_ + "/run.yaml",
                                        "--data-dir",
                                        data_dir(),
                                        "--listen",
                                        data_address_,
                                        "--admin-listen",
                                        admin_address_,
                                        "--metrics-listen",
                                        "",
                                        "--port-file",
                                        ports};
  arguments.insert(arguments.end(), more_.begin(), more_.end());
  ATOLL_ASSIGN_OR_RETURN(process_, Process::Start(arguments, folder_ + "/coordinator.log"));
  const auto deadline = std::chrono::steady_clock::now() + kStartPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (ReadPorts().ok()) return absl::OkStatus();
    if (!process_->running()) {
      const int code = process_->Wait(Seconds(1)).value_or(-1);
      if (code == 128 + SIGKILL) return absl::OkStatus();  // at its fault point
      return absl::InternalError(absl::StrFormat("the coordinator ended with %d: %s", code, log()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return absl::DeadlineExceededError("the coordinator does not serve: " + log());
}

absl::Status Victim::ReadPorts() {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder_ + "/ports.json"));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::UnavailableError("not written yet");
  data_address_ = json.value("data", "");
  admin_address_ = json.value("admin", "");
  return absl::OkStatus();
}

int Victim::Stop() {
  process_->Signal(SIGTERM);
  return process_->Wait(Seconds(60)).value_or(-1);
}

std::string Victim::log() const {
  const std::string text = ReadFile(folder_ + "/coordinator.log").value_or("");
  return text.size() > 3000 ? text.substr(text.size() - 3000) : text;
}

absl::StatusOr<std::string> Victim::NewestCheckpoint() {
  const auto stub = v1::Admin::NewStub(MakeChannel({.address = admin_address_}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ListCheckpointsReply reply;
  const grpc::Status listed = stub->ListCheckpoints(&context, {}, &reply);
  if (!listed.ok()) return absl::UnavailableError(listed.error_message());
  for (int i = reply.checkpoints_size() - 1; i >= 0; --i) {
    if (reply.checkpoints(i).damage().empty()) return reply.checkpoints(i).name();
  }
  return absl::NotFoundError("there is no checkpoint yet");
}

absl::StatusOr<std::vector<Version>> Victim::Restore(const std::string& checkpoint) {
  const auto stub = v1::Admin::NewStub(MakeChannel({.address = admin_address_}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::RestoreCheckpointRequest request;
  request.set_name(checkpoint);
  v1::RestoreCheckpointReply reply;
  const grpc::Status restored = stub->RestoreCheckpoint(&context, request, &reply);
  if (!restored.ok()) return absl::UnavailableError(restored.error_message());
  std::vector<Version> versions;
  for (const uint64_t version : reply.versions()) versions.push_back(Version(version));
  return versions;
}

absl::StatusOr<std::optional<Remains>> Inspect(const std::string& data_dir) {
  const DataDir dir{.root = data_dir};
  if (!FileExists(dir.meta() + "/CURRENT")) return std::nullopt;
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                         MetaDb::Open(dir.meta(), nullptr, DbAccess::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
  if (!loaded.recovery || !loaded.recovery->manifest) return std::nullopt;
  Remains remains{.recovery = *std::move(loaded.recovery), .checkpoints = {}};
  const auto names = ListDir(dir.checkpoints());
  if (!names.ok()) return remains;
  for (const std::string& name : *names) {
    const auto manifest =
        ReadCheckpointManifest(JoinPath(JoinPath(dir.checkpoints(), name), "checkpoint.json"));
    if (manifest.ok()) remains.checkpoints[name] = manifest->versions.front();
  }
  return remains;
}

}  // namespace atl
