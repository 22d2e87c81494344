#include "protos/wire/join.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/printable.h"
#include "common/signature.h"
#include "common/status.h"
#include "protos/wire/field_check.h"
#include "protos/wire/manifest.h"
#include "protos/wire/protocol.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

v1::Role RoleToProto(WorkerRole role) {
  switch (role) {
    case WorkerRole::kTrainer:
      return v1::ROLE_TRAINER;
    case WorkerRole::kEvaluator:
      return v1::ROLE_EVALUATOR;
    case WorkerRole::kObserver:
      break;
  }
  return v1::ROLE_OBSERVER;
}

absl::StatusOr<WorkerRole> RoleFromProto(v1::Role role) {
  switch (role) {
    case v1::ROLE_TRAINER:
      return WorkerRole::kTrainer;
    case v1::ROLE_EVALUATOR:
      return WorkerRole::kEvaluator;
    case v1::ROLE_OBSERVER:
      return WorkerRole::kObserver;
    default:
      return BadField("role", absl::StrCat("no role of ours has the number ", static_cast<int>(role)));
  }
}

v1::Dataset DatasetToProto(const DatasetSummary& dataset) {
  v1::Dataset message;
  message.set_tokenizer(dataset.tokenizer);
  message.set_vocabulary(dataset.vocabulary);
  message.set_train_tokens(dataset.train_tokens);
  message.set_fingerprint(dataset.fingerprint);
  return message;
}

absl::StatusOr<DatasetSummary> DatasetFromProto(const v1::Dataset& dataset) {
  ATOLL_RETURN_IF_ERROR(CheckText("dataset.tokenizer", dataset.tokenizer()));
  ATOLL_RETURN_IF_ERROR(CheckText("dataset.fingerprint", dataset.fingerprint()));
  // Of files that nobody has to have besides.
  const bool none = dataset.fingerprint() == "none";
  return DatasetSummary{.tokenizer = dataset.tokenizer(),
                        .vocabulary = dataset.vocabulary(),
                        .train_tokens = dataset.train_tokens(),
                        .fingerprint = none ? std::string() : dataset.fingerprint()};
}

absl::Status CheckKeys(const v1::JoinRequest& request) {
  const size_t secret_bytes = request.secret().size();
  if (secret_bytes < kMinSecretBytes || secret_bytes > kMaxSecretBytes) {
    return BadField("secret", absl::StrFormat("has %d bytes; %d to %d are allowed", secret_bytes,
                                              kMinSecretBytes, kMaxSecretBytes));
  }
  if (request.public_key().empty() || request.public_key().size() == kPublicKeyBytes) return absl::OkStatus();
  return BadField("public_key", absl::StrFormat("has %d bytes; an Ed25519 key has %d",
                                                request.public_key().size(), kPublicKeyBytes));
}

/// The manifest says its hash; one that was sent besides must be the same.
absl::Status TakeManifest(const v1::JoinRequest& request, JoinCall& call) {
  ATOLL_ASSIGN_OR_RETURN(call.manifest, ManifestFromProto(request.manifest()));
  call.manifest_hash = ManifestHash(*call.manifest);
  if (request.manifest_hash().empty() || request.manifest_hash() == call.manifest_hash) {
    return absl::OkStatus();
  }
  return BadField("manifest_hash",
                  absl::StrFormat("is %s, and the manifest hashes to %s; leave manifest_hash out",
                                  request.manifest_hash(), call.manifest_hash));
}

absl::Status CheckJoinReply(const v1::JoinReply& reply, bool as_member) {
  if (reply.run_id().empty()) return BadReply("no run id");
  if (as_member && reply.incarnation() == 0) return BadReply("no incarnation");
  if (!(reply.heartbeat_s() > 0)) return BadReply("no heartbeat interval");
  if (!reply.manifest_hash().empty() && reply.fragments().empty()) return BadReply("no fragments");
  return absl::OkStatus();
}

}  // namespace

v1::Capabilities DeviceToProto(const DeviceDescription& device) {
  v1::Capabilities capabilities;
  capabilities.set_software_version(device.software_version);
  capabilities.set_device(device.device);
  capabilities.set_device_name(device.device_name);
  capabilities.set_threads(device.threads);
  capabilities.set_memory_bytes(device.memory_bytes);
  capabilities.set_device_memory_bytes(device.device_memory_bytes);
  capabilities.set_ranks(device.ranks);
  return capabilities;
}

absl::StatusOr<DeviceDescription> DeviceFromProto(const v1::Capabilities& capabilities) {
  ATOLL_RETURN_IF_ERROR(CheckText("capabilities.software_version", capabilities.software_version()));
  ATOLL_RETURN_IF_ERROR(CheckText("capabilities.device", capabilities.device()));
  ATOLL_RETURN_IF_ERROR(CheckText("capabilities.device_name", capabilities.device_name()));
  return DeviceDescription{.software_version = Printable(capabilities.software_version()),
                           .device = Printable(capabilities.device()),
                           .device_name = Printable(capabilities.device_name()),
                           .threads = capabilities.threads(),
                           .memory_bytes = capabilities.memory_bytes(),
                           .device_memory_bytes = capabilities.device_memory_bytes(),
                           .ranks = std::max<uint32_t>(capabilities.ranks(), 1)};
}

v1::JoinRequest JoinCallToProto(const JoinCall& call) {
  v1::JoinRequest request;
  *request.mutable_protocol() = OurProtocolVersion();
  request.set_worker(call.worker);
  request.set_secret(call.secret);
  request.set_public_key(call.public_key);
  request.set_role(RoleToProto(call.role));
  request.set_manifest_hash(call.manifest_hash);
  if (call.manifest.has_value()) *request.mutable_manifest() = ManifestToProto(*call.manifest);
  *request.mutable_capabilities() = DeviceToProto(call.device);
  if (call.dataset.has_value()) *request.mutable_dataset() = DatasetToProto(*call.dataset);
  request.set_expected_run(call.expected_run);
  return request;
}

absl::StatusOr<JoinCall> JoinCallFromProto(const v1::JoinRequest& request) {
  ATOLL_RETURN_IF_ERROR(CheckProtocolVersion(request.protocol(), "worker"));
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(request.worker()));
  ATOLL_RETURN_IF_ERROR(CheckKeys(request));
  ATOLL_RETURN_IF_ERROR(CheckText("manifest_hash", request.manifest_hash()));
  ATOLL_RETURN_IF_ERROR(CheckText("expected_run", request.expected_run()));
  JoinCall call;
  ATOLL_ASSIGN_OR_RETURN(call.device, DeviceFromProto(request.capabilities()));
  if (request.has_dataset()) {
    ATOLL_ASSIGN_OR_RETURN(call.dataset, DatasetFromProto(request.dataset()));
  }
  ATOLL_ASSIGN_OR_RETURN(call.role, RoleFromProto(request.role()));
  call.worker = request.worker();
  call.secret = request.secret();
  call.public_key = request.public_key();
  call.manifest_hash = request.manifest_hash();
  if (request.has_manifest()) ATOLL_RETURN_IF_ERROR(TakeManifest(request, call));
  call.expected_run = request.expected_run();
  return call;
}

absl::Status JoinReplyToProto(const JoinReply& reply, v1::JoinReply* message) {
  *message->mutable_protocol() = OurProtocolVersion();
  message->set_run_id(reply.member.run_id);
  message->set_epoch(reply.member.epoch.value());
  message->set_incarnation(reply.member.incarnation.value());
  message->set_lease_s(ToSeconds(reply.lease));
  message->set_heartbeat_s(ToSeconds(reply.heartbeat));
  if (!message->mutable_config()->ParseFromString(reply.config_bytes)) {
    return absl::InternalError("the recorded run configuration is not a RunConfig");
  }
  message->set_config_version(reply.config_version);
  message->set_manifest_hash(reply.manifest_hash);
  if (reply.manifest.has_value()) *message->mutable_manifest() = ManifestToProto(*reply.manifest);
  if (reply.data.has_value()) *message->mutable_data() = DataPartToProto(*reply.data);
  FragmentHeadsToProto(reply.fragments, message->mutable_fragments());
  message->set_state(RunStateToProto(reply.state));
  message->set_seed_granted(reply.seed_granted);
  message->set_returning(reply.returning);
  for (const PushKey& key : reply.accepted) *message->add_accepted() = PushKeyToProto(key);
  message->set_committed_tokens(reply.committed_tokens);
  message->set_total_tokens(reply.total_tokens);
  message->set_last_event_sequence(reply.last_event_sequence);
  return absl::OkStatus();
}

absl::StatusOr<JoinReply> JoinReplyFromProto(const v1::JoinReply& message, const JoinCall& call) {
  ATOLL_RETURN_IF_ERROR(CheckProtocolVersion(message.protocol(), "coordinator"));
  ATOLL_RETURN_IF_ERROR(CheckJoinReply(message, call.BecomesMember()));
  JoinReply reply;
  reply.protocol_minor = message.protocol().minor();
  reply.member = {.run_id = message.run_id(),
                  .epoch = Epoch(message.epoch()),
                  .worker = call.worker,
                  .incarnation = Incarnation(message.incarnation())};
  reply.lease = BoundedSeconds(message.lease_s());
  reply.heartbeat = BoundedSeconds(message.heartbeat_s());
  reply.config_bytes = message.config().SerializeAsString();
  reply.config_version = message.config_version();
  reply.manifest_hash = message.manifest_hash();
  if (message.has_manifest()) {
    ATOLL_ASSIGN_OR_RETURN(reply.manifest, ManifestFromProto(message.manifest()));
  }
  if (message.has_data()) {
    ATOLL_ASSIGN_OR_RETURN(reply.data, DataPartFromProto(message.data()));
  }
  reply.fragments = FragmentHeadsFromProto(message.fragments());
  reply.state = RunStateFromProto(message.state());
  reply.seed_granted = message.seed_granted();
  reply.returning = message.returning();
  for (const v1::PushRef& ref : message.accepted()) reply.accepted.push_back(PushKeyFromProto(ref));
  reply.committed_tokens = message.committed_tokens();
  reply.total_tokens = message.total_tokens();
  reply.last_event_sequence = message.last_event_sequence();
  return reply;
}

}  // namespace atl
