#include "server/admin/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/crc32c.h"
#include "core/codec.h"
#include "core/merge.h"
#include "server/rounds/recover_fragments.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using testing::HasSubstr;
using Verdict = VerifyView::Verdict;

/// A run of four versions on disk, computed as the coordinator does.
class VerifierTest : public testing::Test {
 protected:
  void SetUp() override {
    Open();
    manifest_.tensors = {{.name = "weight", .shape = {300, 256}}};
    layout_ = PlanFragments(manifest_, 1)->front();
    ASSERT_TRUE(store_
                    ->CreateRun({.run_id = "0123456789abcdef",
                                 .name = "v",
                                 .epoch = kEpoch,
                                 .shards = 2,
                                 .chunk_elements = 8192},
                                {.version = 1, .recorded_unix_ns = 0, .bytes = ""})
                    .ok());
    state_ = {.epoch = kEpoch, .layout = layout_, .version = Version(0), .theta = nullptr, .state = {}};
    TensorBuffer theta(layout_.elements);
    for (uint64_t i = 0; i < layout_.elements; ++i) theta.values()[i] = 0.001F * static_cast<float>(i % 777);
    state_.theta = std::make_shared<TensorBuffer>(std::move(theta));
    state_.state.push_back(TensorBuffer::Zeros(layout_.elements));
    ASSERT_TRUE(store_->Seed(manifest_, {layout_}, {state_.view()}).ok());
    for (uint64_t version = 1; version <= 4; ++version) Round(Version(version));
  }

  void Open() {
    store_.reset();
    auto opened = OpenRocksDbStore({.data_dir = dir(), .create_if_missing = true, .headroom_bytes = 0});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    ASSERT_TRUE(store_->Recover().ok());
  }

  Contribution Push(const WorkerName& worker, Version base) {
    std::vector<float> delta(layout_.elements);
    for (uint64_t i = 0; i < delta.size(); ++i) {
      delta[i] = 0.01F * static_cast<float>((i * 31 + base.value() + static_cast<uint64_t>(worker[0])) % 100);
    }
    const auto payload = std::as_bytes(std::span(delta));
    Contribution c;
    c.key = {.epoch = kEpoch, .fragment = layout_.id, .base = base, .worker = worker, .sequence = 0};
    c.payload_bytes = payload.size();
    c.payload_crc32c = Crc32c(payload);
    c.tokens = 10;
    auto upload = store_->StartUpload(c.key, payload.size());
    EXPECT_TRUE(upload.ok()) << upload.status();
    EXPECT_TRUE((*upload)->Append(payload).ok());
    EXPECT_TRUE((*upload)->Accept(c).ok());
    return c;
  }

  void Round(Version version) {
    RoundRecord record;
    record.epoch = kEpoch;
    record.version = version;
    record.outer_steps = version.value();
    record.config_version = 1;
    const Version base(version.value() - 1);
    record.contributions = {Push("a", base), Push("b", base)};
    record.weights = {0.5F, 0.5F};
    MergeEngine engine(1, CodecKind::kFp32);
    const auto mapped = MapInputs(*store_, record.contributions, record.weights);
    auto computed = engine.Step(mapped->inputs, record.merge, record.outer, state_);
    ASSERT_TRUE(computed.ok()) << computed.status();
    record.parameters = computed->hashes.parameters;
    record.state = computed->hashes.state;
    record.published = computed->hashes.published;
    if (version == wrong_version_) record.published.low ^= 1;
    state_.theta = computed->theta;
    state_.version = version;
    state_.outer_steps = version.value();
    ASSERT_TRUE(store_->CommitRound(record, {}).ok());
    ASSERT_TRUE(store_->StoreVersion(layout_, version, state_.view(), 3).ok());
  }

  std::vector<VerifyView> Verify(std::optional<Version> version = std::nullopt) {
    Verifier verifier(store_.get(), {layout_}, RunOptions{}, nullptr);
    std::vector<VerifyView> views;
    const absl::Status status = verifier.Verify(version, [&](const VerifyView& view) {
      views.push_back(view);
      return true;
    });
    EXPECT_TRUE(status.ok()) << status;
    return views;
  }

  /// Of the files in this folder whose path holds `part`: one bit in the middle of the largest changed.
  void Flip(const std::string& folder, const std::string& part) {
    std::string largest;
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir() + "/" + folder)) {
      if (!entry.is_regular_file() || entry.path().string().find(part) == std::string::npos) continue;
      if (entry.file_size() <= bytes) continue;
      bytes = entry.file_size();
      largest = entry.path().string();
    }
    ASSERT_FALSE(largest.empty());
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(bytes / 2));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(bytes / 2));
    file.put(byte);
  }

  std::string dir() const { return dir_.path() + "/run"; }

  static constexpr Epoch kEpoch{77};
  const TestDir dir_;
  Version wrong_version_{999};
  Manifest manifest_;
  FragmentLayout layout_;
  FragmentState state_;
  std::unique_ptr<RunStore> store_;
};

TEST_F(VerifierTest, RetainedVersionsAreRecomputedBitForBit) {
  const std::vector<VerifyView> views = Verify();  // 2, 3, 4 are kept
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].verdict, Verdict::kNotKept) << views[0].message;
  EXPECT_THAT(views[0].message, HasSubstr("what is stored is what was committed"));
  EXPECT_EQ(views[1].verdict, Verdict::kEqual) << views[1].message;
  EXPECT_EQ(views[2].verdict, Verdict::kEqual) << views[2].message;
  EXPECT_EQ(views[2].version, Version(4));
  EXPECT_EQ(views[2].done, 3u);
  EXPECT_EQ(views[2].total, 3u);
  EXPECT_EQ(Verify(Version(4))[0].verdict, Verdict::kEqual);
  EXPECT_EQ(Verify(Version(1))[0].verdict, Verdict::kNotKept);
  EXPECT_EQ(Verify(Version(0))[0].verdict, Verdict::kNotKept);
  Verifier verifier(store_.get(), {layout_}, RunOptions{}, nullptr);
  EXPECT_EQ(verifier.Verify(Version(9), [](const VerifyView&) { return true; }).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(VerifierTest, ADamagedContributionIsNamed) {
  Flip("contributions", "0000000000000003-00000000-b");  // b's on version 3
  const std::vector<VerifyView> views = Verify(Version(4));
  EXPECT_EQ(views[0].verdict, Verdict::kDifferent);
  EXPECT_THAT(views[0].message, HasSubstr("contribution of worker b to fragment 0 on base 3"));
  EXPECT_EQ(Verify(Version(3))[0].verdict, Verdict::kEqual);
}

TEST_F(VerifierTest, AMissingContributionIsNamed) {
  for (const auto& entry : std::filesystem::directory_iterator(dir() + "/contributions")) {
    if (entry.path().string().find("0000000000000003-00000000-a") != std::string::npos) {
      std::filesystem::remove(entry.path());
    }
  }
  const std::vector<VerifyView> views = Verify(Version(4));
  EXPECT_EQ(views[0].verdict, Verdict::kDifferent);
  EXPECT_THAT(views[0].message, HasSubstr("is missing"));
}

TEST_F(VerifierTest, DamagedTensorsAreNamed) {
  Flip("shards/01", ".sst");
  size_t different = 0;
  for (const VerifyView& view : Verify()) {
    if (view.verdict != Verdict::kDifferent) continue;
    ++different;
    EXPECT_THAT(view.message, HasSubstr(".sst"));
  }
  EXPECT_GE(different, 1u);
}

TEST_F(VerifierTest, ARecordThatSaysOtherwiseIsDifferent) {
  wrong_version_ = Version(5);
  Round(Version(5));
  const std::vector<VerifyView> views = Verify(Version(5));
  EXPECT_EQ(views[0].verdict, Verdict::kDifferent);
  EXPECT_THAT(views[0].message, HasSubstr("published payload"));
}

TEST_F(VerifierTest, ARecordOfFewerWeightsThanContributionsIsRejectedByName) {
  RoundRecord record = *store_->ReadRound(layout_.id, Version(4));
  record.weights.pop_back();
  const auto mapped = MapInputs(*store_, record.contributions, record.weights);
  EXPECT_EQ(mapped.status().code(), absl::StatusCode::kDataLoss);
  FragmentState state = *LoadFragment(*store_, false, kEpoch, layout_, Version(3));
  state.outer_steps = record.outer_steps - 1;
  MergeEngine engine(1, CodecKind::kFp32);
  const absl::Status replayed = Replay(*store_, engine, record, state);
  EXPECT_EQ(replayed.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(replayed.message()), testing::AllOf(HasSubstr("version 4 of fragment 0"),
                                                              HasSubstr("2 contributions and 1 weights")));
  EXPECT_EQ(state.version, Version(3));
}

TEST_F(VerifierTest, TheCallerMayStopAndConfirmationsAreListed) {
  const auto confirm = [](FragmentId, Version version, VerifyView& view) {
    view.confirmed_by.push_back("v" + std::to_string(version.value()));
  };
  Verifier verifier(store_.get(), {layout_}, RunOptions{}, confirm);
  int seen = 0;
  ASSERT_TRUE(verifier
                  .Verify(std::nullopt,
                          [&](const VerifyView& view) {
                            EXPECT_EQ(view.confirmed_by[0], "v" + std::to_string(view.version.value()));
                            return ++seen < 2;
                          })
                  .ok());
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace atl
