#include "storage/run_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "storage/meta_keys.h"

namespace atl {
namespace {

using testing::HasSubstr;

/// The records of a run with one fragment: stored 0, head 1 by worker a.
class RunLoaderTest : public testing::Test {
 protected:
  RunLoaderTest() {
    identity_ = {.run_id = "r",
                 .name = "n",
                 .epoch = Epoch(7),
                 .created_unix_ns = 1,
                 .shards = 1,
                 .chunk_elements = 4096};
    contribution_.key = {
        .epoch = Epoch(7), .fragment = FragmentId(0), .base = Version(0), .worker = "a", .sequence = 0};
    contribution_.payload_bytes = 5;
    round_.epoch = Epoch(7);
    round_.version = Version(1);
    round_.config_version = 1;
    round_.contributions = {contribution_};
    round_.weights = {1};
    Put(identity_);
    Put(ConfigEntry{.version = 1, .recorded_unix_ns = 0, .author = "start", .bytes = "c"});
    Put(Manifest{.tensors = {{.name = "w", .shape = {256}, .embedding = false}}});
    Put(HeadOf(FragmentId(0)));
    Put(StoredAt({Version(0)}));
    Put(round_);
    Put(contribution_);
  }

  static HeadEntry HeadOf(FragmentId fragment, uint64_t config_version = 1) {
    return {.fragment = fragment, .epoch = Epoch(7), .version = Version(1), .config_version = config_version};
  }

  static StoredEntry StoredAt(std::vector<Version> versions) {
    return {.fragment = FragmentId(0),
            .epoch = Epoch(7),
            .elements = 256,
            .state_vectors = 1,
            .versions = std::move(versions)};
  }

  template <typename T>
  void Put(const T& record) {
    meta_[meta_keys::KeyOf(record)] = EncodeRecord(record);
  }

  absl::StatusOr<LoadedRun> Load() const {
    RunLoader loader;
    for (const auto& [key, value] : meta_) {
      const absl::Status added = loader.Add(key, value);
      if (!added.ok()) return added;
    }
    return std::move(loader).Finish();
  }

  std::string ErrorOf() const {
    const auto loaded = Load();
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
    return loaded.status().ToString();
  }

  RunIdentity identity_;
  Contribution contribution_;
  RoundRecord round_;
  std::map<std::string, std::string> meta_;
};

TEST_F(RunLoaderTest, LoadsWhatIsThere) {
  const auto loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->recovery->fragments.size(), 1u);
  EXPECT_EQ(loaded->recovery->fragments[0].to_replay, std::vector<RoundRecord>{round_});
  EXPECT_EQ(loaded->store_index.head(FragmentId(0)), Version(1));
}

TEST_F(RunLoaderTest, NothingIsNoRun) {
  meta_.clear();
  EXPECT_FALSE(Load()->recovery.has_value());
}

TEST_F(RunLoaderTest, EveryMissingRecordIsNamed) {
  const auto without = [this](const std::string& key) {
    const auto removed = meta_.extract(key);
    const std::string error = ErrorOf();
    meta_[key] = removed.mapped();
    return error;
  };
  EXPECT_THAT(without("identity"), HasSubstr("record identity is missing"));
  EXPECT_THAT(without(meta_keys::KeyOf(
                  ConfigEntry{.version = 1, .recorded_unix_ns = 0, .author = "start", .bytes = ""})),
              HasSubstr("config/1 is missing"));
  EXPECT_THAT(without("manifest"), HasSubstr("manifest absent, 1 heads"));
  EXPECT_THAT(without(meta_keys::KeyOf(StoredAt({}))), HasSubstr("seeding is incomplete"));
  EXPECT_THAT(without(meta_keys::KeyOf(round_)), HasSubstr("the stored version is 0 and the head is 1"));
  EXPECT_THAT(without(meta_keys::KeyOf(contribution_)), HasSubstr("worker a"));
}

TEST_F(RunLoaderTest, ARecordUnderAnotherKeyIsRejected) {
  meta_[meta_keys::KeyOf(HeadOf(FragmentId(1)))] = meta_.at(meta_keys::KeyOf(HeadOf(FragmentId(0))));
  EXPECT_THAT(ErrorOf(), HasSubstr("belongs under another key"));
}

TEST_F(RunLoaderTest, AKeyOfANewerProgramIsRejected) {
  meta_["zebra/1"] = "x";
  EXPECT_THAT(ErrorOf(), HasSubstr("record zebra/1: this version does not know this key"));
}

TEST_F(RunLoaderTest, ADamagedRecordIsNamed) {
  meta_["manifest"][10] ^= 1;
  EXPECT_THAT(ErrorOf(), HasSubstr("record manifest: field crc32c"));
}

TEST_F(RunLoaderTest, TheConfigurationOfTheOpenRoundMustBeThere) {
  Put(ConfigEntry{.version = 2, .recorded_unix_ns = 0, .author = "ann", .bytes = "d"});
  Put(HeadOf(FragmentId(0), 2));
  EXPECT_EQ(Load()->recovery->fragments[0].config_version, 2u);
  for (const uint64_t missing : {0u, 3u}) {
    Put(HeadOf(FragmentId(0), missing));
    EXPECT_THAT(ErrorOf(), HasSubstr("record head/0 names configuration " + std::to_string(missing)));
  }
}

TEST_F(RunLoaderTest, AStoredVersionAboveTheHeadIsRejected) {
  Put(StoredAt({Version(0), Version(2)}));
  EXPECT_THAT(ErrorOf(), HasSubstr("contradict each other"));
  Put(StoredAt({Version(1), Version(0)}));
  EXPECT_THAT(ErrorOf(), HasSubstr("contradict each other"));
  Put(StoredAt({}));
  EXPECT_THAT(ErrorOf(), HasSubstr("contradict each other"));
}

TEST_F(RunLoaderTest, AManifestThatCannotBeIsRejected) {
  Put(Manifest{.tensors = {{.name = "w", .shape = {-1}, .embedding = false}}});
  EXPECT_THAT(ErrorOf(), HasSubstr("record manifest"));
}

TEST_F(RunLoaderTest, ContributionsOfAnotherEpochAreNotPending) {
  Put(StoredAt({Version(1)}));
  Contribution old = contribution_;
  old.key.base = Version(1);
  old.key.epoch = Epoch(6);
  Put(old);
  EXPECT_TRUE(Load()->recovery->fragments[0].accepted.empty());
  old.key.epoch = Epoch(7);
  Put(old);
  EXPECT_EQ(Load()->recovery->fragments[0].accepted, std::vector<Contribution>{old});
}

}  // namespace
}  // namespace atl
