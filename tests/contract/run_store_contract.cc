#include "tests/contract/run_store_contract.h"

#include <utility>

#include "common/crc32c.h"

namespace atl {

ConfigEntry ConfigAt(uint64_t version) {
  ConfigEntry config;
  config.version = version;
  return config;
}

WorkerEntry WorkerNamed(const std::string& name) {
  WorkerEntry worker;
  worker.name = name;
  return worker;
}

std::string BytesOf(const Payload& payload) {
  const auto bytes = payload.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::Status AppendString(Upload& upload, const std::string& bytes) {
  return upload.Append(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

void RunStoreContract::SetUp() {
  identity_ = {.run_id = "00112233445566ff",
               .name = "contract",
               .epoch = Epoch(0xfeedface12345678),
               .created_unix_ns = 1700000000000000000,
               .shards = kShards,
               .chunk_elements = kChunkElements};
  manifest_.tensors = {{.name = "embedding", .shape = {60, 256}, .embedding = true},
                       {.name = "head.weight", .shape = {20, 256}, .embedding = false}};
  harness_ = GetParam().make();
  Reopen();
}

void RunStoreContract::Reopen() {
  store_.reset();
  auto opened = harness_->Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
  auto found = store_->Recover();
  ASSERT_TRUE(found.ok()) << found.status();
  recovery_ = *std::move(found);
}

void RunStoreContract::Create() {
  const absl::Status created =
      store().CreateRun(identity_, {.version = 1, .recorded_unix_ns = 1, .bytes = "first"});
  ASSERT_TRUE(created.ok()) << created;
}

void RunStoreContract::CreateAndSeed(uint32_t fragments) {
  Create();
  auto planned = PlanFragments(manifest_, fragments);
  ASSERT_TRUE(planned.ok()) << planned.status();
  layouts_ = *std::move(planned);
  std::vector<FragmentTensors> tensors;
  for (uint32_t i = 0; i < fragments; ++i) tensors.push_back(TensorsAt(i, 0));
  std::vector<FragmentTensorsView> views;
  for (const FragmentTensors& t : tensors) views.push_back(ViewOf(t));
  const absl::Status seeded = store().Seed(manifest_, layouts_, views);
  ASSERT_TRUE(seeded.ok()) << seeded;
}

FragmentTensors RunStoreContract::TensorsAt(uint32_t fragment, uint64_t version) const {
  FragmentTensors tensors;
  tensors.state.resize(1);
  for (uint64_t i = 0; i < layouts_[fragment].elements; ++i) {
    tensors.parameters.push_back(static_cast<float>(i) + 0.5f * static_cast<float>(version + fragment));
    tensors.state[0].push_back(-static_cast<float>(i) - 0.25f * static_cast<float>(version));
  }
  return tensors;
}

FragmentTensorsView RunStoreContract::ViewOf(const FragmentTensors& tensors) {
  FragmentTensorsView view{.parameters = tensors.parameters, .state = {}};
  for (const auto& vector : tensors.state) view.state.emplace_back(vector);
  return view;
}

ContributionKey RunStoreContract::KeyOf(const std::string& worker, uint64_t base, uint32_t fragment) const {
  return {.epoch = identity_.epoch,
          .fragment = FragmentId(fragment),
          .base = Version(base),
          .worker = worker,
          .sequence = 0};
}

std::string RunStoreContract::PayloadFor(const ContributionKey& key) {
  std::string payload;
  for (int i = 0; i < 500; ++i) payload += key.worker + std::to_string(key.base.value()) + ",";
  return payload;
}

Contribution RunStoreContract::ContributionFor(const ContributionKey& key) const {
  const std::string payload = PayloadFor(key);
  return {.key = key,
          .incarnation = Incarnation(3),
          .codec = CodecKind::kInt8,
          .payload_bytes = payload.size(),
          .payload_crc32c = Crc32c(std::string_view(payload)),
          .tokens = 1000 + key.base.value(),
          .steps = 50,
          .samples_consumed = 77,
          .norm = 1.25,
          .mean_loss = 2.5};
}

absl::Status RunStoreContract::Push(const ContributionKey& key) {
  const std::string payload = PayloadFor(key);
  auto upload = store().StartUpload(key, payload.size());
  if (!upload.ok()) return upload.status();
  const absl::Status appended = AppendString(**upload, payload.substr((*upload)->received_bytes()));
  if (!appended.ok()) return appended;
  return (*upload)->Accept(ContributionFor(key));
}

RoundRecord RunStoreContract::RecordFor(uint64_t version, const std::vector<std::string>& workers,
                                        uint32_t fragment) const {
  RoundRecord record{.epoch = identity_.epoch,
                     .fragment = FragmentId(fragment),
                     .version = Version(version),
                     .config_version = 1,
                     .outer = {},
                     .contributions = {},
                     .weights = {},
                     .committed_tokens = 4000 * version,
                     .closed_unix_ns = 1700000000000000001,
                     .close_reason = "all arrived",
                     .parameters = {.low = version, .high = 1},
                     .state = {.low = version, .high = 2},
                     .published = {.low = version, .high = 3}};
  for (const std::string& worker : workers) {
    record.contributions.push_back(ContributionFor(KeyOf(worker, version - 1, fragment)));
    record.weights.push_back(1.0f / static_cast<float>(workers.size()));
  }
  return record;
}

void RunStoreContract::PushAndCommit(uint64_t version, const std::vector<std::string>& workers,
                                     uint32_t fragment) {
  for (const std::string& worker : workers) {
    const absl::Status pushed = Push(KeyOf(worker, version - 1, fragment));
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  const absl::Status committed = store().CommitRound(RecordFor(version, workers, fragment), {});
  ASSERT_TRUE(committed.ok()) << committed;
}

absl::Status RunStoreContract::Store(uint64_t version, uint32_t keep, uint32_t fragment) {
  const FragmentTensors tensors = TensorsAt(fragment, version);
  return store().StoreVersion(layout(fragment), Version(version), ViewOf(tensors), keep);
}

}  // namespace atl
