#include "tests/storage/store_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/crc32c.h"
#include "common/random.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kPiece = 64 << 10;

}  // namespace

FragmentTensorsView ViewOf(const FragmentTensors& tensors) {
  FragmentTensorsView view{.parameters = tensors.parameters, .state = {}};
  for (const auto& vector : tensors.state) view.state.emplace_back(vector);
  return view;
}

StoreModel StoreModel::Make(int64_t rows, uint64_t payload_bytes) {
  StoreModel model;
  model.identity = {.run_id = "0123456789abcdef",
                    .name = "model",
                    .epoch = Epoch(0xabcdef),
                    .created_unix_ns = 1,
                    .shards = 3,
                    .chunk_elements = 16384};
  model.manifest.tensors = {{.name = "weight", .shape = {rows, 256}, .embedding = false}};
  model.layout = PlanFragments(model.manifest, 1).value().front();
  model.payload_bytes = payload_bytes;
  return model;
}

FragmentTensors StoreModel::TensorsAt(Version version) const {
  FragmentTensors tensors;
  tensors.parameters.resize(layout.elements);
  tensors.state.assign(1, std::vector<float>(layout.elements));
  for (uint64_t i = 0; i < layout.elements; ++i) {
    const uint64_t bits = DeriveSeed(version.value(), i);
    tensors.parameters[i] = static_cast<float>(static_cast<int32_t>(bits));
    tensors.state[0][i] = static_cast<float>(static_cast<int32_t>(bits >> 32));
  }
  return tensors;
}

ContributionKey StoreModel::KeyOf(const std::string& worker, Version base) const {
  return {.epoch = identity.epoch, .fragment = layout.id, .base = base, .worker = worker, .sequence = 0};
}

std::string StoreModel::PayloadOf(const ContributionKey& key) const {
  SplitMixGenerator random(DeriveSeed(Crc32c(std::string_view(key.worker)), key.base.value()));
  std::string payload(payload_bytes, '\0');
  for (size_t i = 0; i + 8 <= payload.size(); i += 8) {
    const uint64_t bits = random();
    std::memcpy(payload.data() + i, &bits, 8);
  }
  return payload;
}

Contribution StoreModel::ContributionOf(const ContributionKey& key) const {
  return {.key = key,
          .incarnation = Incarnation(1),
          .codec = CodecKind::kFp32,
          .payload_bytes = payload_bytes,
          .payload_crc32c = Crc32c(std::string_view(PayloadOf(key))),
          .tokens = 100,
          .steps = 1,
          .samples_consumed = key.base.value() + 1,
          .norm = 1,
          .mean_loss = 1};
}

RoundRecord StoreModel::RecordOf(Version version, const std::string& worker) const {
  RoundRecord record;
  record.epoch = identity.epoch;
  record.fragment = layout.id;
  record.version = version;
  record.config_version = 1;
  record.contributions = {ContributionOf(KeyOf(worker, Version(version.value() - 1)))};
  record.weights = {1};
  record.committed_tokens = 100 * version.value();
  record.close_reason = "all arrived";
  return record;
}

absl::Status StoreModel::CreateRun(RunStore& store) const {
  return store.CreateRun(identity, {.version = 1, .recorded_unix_ns = 1, .bytes = "configuration"});
}

absl::Status StoreModel::Seed(RunStore& store) const {
  const FragmentTensors tensors = TensorsAt(Version(0));
  return store.Seed(manifest, {layout}, {ViewOf(tensors)});
}

absl::Status StoreModel::Push(RunStore& store, const ContributionKey& key) const {
  const std::string payload = PayloadOf(key);
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Upload> upload, store.StartUpload(key, payload.size()));
  while (upload->received_bytes() < payload.size()) {
    const size_t at = upload->received_bytes();
    const size_t size = std::min(kPiece, payload.size() - at);
    ATOLL_RETURN_IF_ERROR(upload->Append(std::as_bytes(std::span(payload.data() + at, size))));
  }
  return upload->Accept(ContributionOf(key));
}

absl::Status StoreModel::Commit(RunStore& store, Version version, const std::string& worker) const {
  return store.CommitRound(RecordOf(version, worker),
                           {{.partition = 0, .samples_consumed = version.value()}});
}

absl::Status StoreModel::Store(RunStore& store, Version version, uint32_t keep) const {
  const FragmentTensors tensors = TensorsAt(version);
  return store.StoreVersion(layout, version, ViewOf(tensors), keep);
}

absl::Status StoreModel::CheckVersion(RunStore& store, Version version) const {
  ATOLL_ASSIGN_OR_RETURN(const FragmentTensors read, store.ReadVersion(layout, version));
  const FragmentTensors expected = TensorsAt(version);
  if (read.parameters == expected.parameters && read.state == expected.state) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("version ", version.value(), " reads back differently"));
}

absl::Status StoreModel::CheckPayload(RunStore& store, const ContributionKey& key) const {
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Payload> payload, store.OpenPayload(key));
  const std::string expected = PayloadOf(key);
  if (payload->bytes().size() == expected.size() &&
      std::memcmp(payload->bytes().data(), expected.data(), expected.size()) == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("payload of ", key.worker, " reads back differently"));
}

}  // namespace atl
