#include "client/parameters/parameters_assembler.h"

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "core/protocol/pull.h"
#include "protos/config/run_config.h"
#include "protos/wire/manifest.h"

namespace atl {
namespace {

static_assert(std::endian::native == std::endian::little, "the messages hold little-endian values");

constexpr int kMostStateVectors = 16;

absl::Status Wrong(const std::string& what) {
  return absl::DataLossError(absl::StrFormat("the coordinator's answer is not whole: %s; try again", what));
}

}  // namespace

v1::ReadParametersRequest ParametersQueryToProto(const ParametersQuery& query) {
  v1::ReadParametersRequest request;
  if (query.version) request.set_version(*query.version);
  if (!query.checkpoint.empty()) request.set_checkpoint(query.checkpoint);
  request.set_outer_state(query.outer_state);
  return request;
}

ParametersAssembler::ParametersAssembler(ParametersQuery query, CheckRun check)
    : query_(std::move(query)), check_(std::move(check)) {}

absl::Status ParametersAssembler::Begin(const v1::ParametersHeader& header) {
  ATOLL_ASSIGN_OR_RETURN(result_.options, ToRunOptions(header.config()));
  ATOLL_RETURN_IF_ERROR(check_(result_.options));
  ATOLL_ASSIGN_OR_RETURN(result_.manifest, ManifestFromProto(header.manifest()));
  if (header.outer_state_size() > kMostStateVectors) return Wrong("it has too many vectors");
  if (!query_.outer_state && header.outer_state_size() > 0) return Wrong("it has vectors nobody asked for");
  ATOLL_ASSIGN_OR_RETURN(result_.layouts,
                         PlanFragments(result_.manifest, static_cast<uint32_t>(header.versions_size()),
                                       result_.options.sync.pattern));
  result_.run_id = header.run_id();
  result_.epoch = header.epoch();
  result_.versions.assign(header.versions().begin(), header.versions().end());
  result_.state_names.assign(header.outer_state().begin(), header.outer_state().end());
  result_.parameters.resize(result_.layouts.size());
  result_.state.assign(result_.state_names.size(), result_.parameters);
  for (const uint64_t version : result_.versions) {
    if (query_.version && version != *query_.version) {
      return Wrong(absl::StrFormat("it has version %d instead of %d", version, *query_.version));
    }
  }
  return absl::OkStatus();
}

std::vector<float>* ParametersAssembler::Target() {
  if (fragment_ == result_.layouts.size()) return nullptr;
  return vector_ == 0 ? &result_.parameters[fragment_] : &result_.state[vector_ - 1][fragment_];
}

void ParametersAssembler::Advance(uint64_t bytes) {
  received_ += bytes;
  if (received_ < result_.layouts[fragment_].elements * sizeof(float)) return;
  received_ = 0;
  if (++vector_ <= result_.state.size()) return;
  vector_ = 0;
  ++fragment_;
}

absl::Status ParametersAssembler::Add(const v1::ParametersChunk& message) {
  if (!std::exchange(begun_, true)) return Begin(message.header());
  std::vector<float>* const target = Target();
  if (target == nullptr) return Wrong("it goes on after its end");
  const std::string& data = message.chunk().data();
  const uint64_t elements = result_.layouts[fragment_].elements;
  const bool next =
      message.fragment() == fragment_ && message.vector() == vector_ && message.chunk().offset() == received_;
  if (!next || data.empty() || data.size() > kWireChunkBytes ||
      data.size() > elements * sizeof(float) - received_) {
    return Wrong(
        absl::StrFormat("it continues with %d bytes at byte %d of vector %d of fragment %d, not at "
                        "byte %d of vector %d of fragment %d",
                        data.size(), message.chunk().offset(), message.vector(), message.fragment(),
                        received_, vector_, fragment_));
  }
  if (Crc32c(data) != message.chunk().crc32c()) {
    return Wrong(absl::StrFormat("bytes from byte %d of fragment %d on were damaged in transit", received_,
                                 fragment_));
  }
  if (target->empty()) target->resize(elements);
  std::memcpy(std::as_writable_bytes(std::span(*target)).data() + received_, data.data(), data.size());
  Advance(data.size());
  return absl::OkStatus();
}

absl::StatusOr<StoredParameters> ParametersAssembler::Finish() && {
  if (!begun_) return Wrong("it is empty");
  if (Target() == nullptr) return std::move(result_);
  return Wrong(
      absl::StrFormat("it ends at byte %d of vector %d of fragment %d", received_, vector_, fragment_));
}

absl::StatusOr<StoredParameters> ReadParameters(
    v1::Admin::Stub& stub, grpc::ClientContext& context, const ParametersQuery& query, const CheckRun& check,
    const std::function<absl::Status(const grpc::Status&)>& translate) {
  ParametersAssembler assembler(query, check);
  const auto reader = stub.ReadParameters(&context, ParametersQueryToProto(query));
  v1::ParametersChunk message;
  absl::Status added;
  while (added.ok() && reader->Read(&message)) added = assembler.Add(message);
  if (!added.ok()) context.TryCancel();
  const grpc::Status call = reader->Finish();
  ATOLL_RETURN_IF_ERROR(added);
  if (!call.ok()) return translate(call);
  return std::move(assembler).Finish();
}

}  // namespace atl
