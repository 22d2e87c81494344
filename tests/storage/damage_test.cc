#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/common/file_tree.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

// A disk that returns other bytes than were written, and files that are gone: a start serves what was
// acknowledged, or refuses and changes nothing.

namespace atl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;  // unsynced: there are hundreds
  ASSERT_EQ(FileSize(path).value(), bytes.size());
}

std::string Flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

class DamageTest : public testing::Test {
 protected:
  /// As a kill leaves it: version 3 is the head, 2 is stored, b and c are in the open round.
  void MakeRun() {
    auto store = OpenIn(run()).value();
    ASSERT_TRUE(model_.CreateRun(*store).ok());
    ASSERT_TRUE(model_.Seed(*store).ok());
    for (uint64_t version = 1; version <= 3; ++version) {
      ASSERT_TRUE(model_.Push(*store, model_.KeyOf("a", Version(version - 1))).ok());
      ASSERT_TRUE(model_.Commit(*store, Version(version), "a").ok());
      ASSERT_TRUE(store->AppendEvent({.sequence = version, .bytes = "something happened"}).ok());
      if (version < 3) {
        ASSERT_TRUE(model_.Store(*store, Version(version), 2).ok());
      }
    }
    for (const char* worker : {"b", "c"}) {
      ASSERT_TRUE(model_.Push(*store, model_.KeyOf(worker, Version(3))).ok());
    }
    AppendEvents(*store);
    fs::copy(run(), killed(), fs::copy_options::recursive);
  }
  /// The same after a restart, so that the records are in a table file.
  void MakeSecondLife() {
    auto store = OpenIn(killed()).value();
    ASSERT_TRUE(model_.Push(*store, model_.KeyOf("d", Version(3))).ok());
    AppendEvents(*store);
    const std::string copy = temp_.path() + "/copy";
    fs::copy(killed(), copy, fs::copy_options::recursive);
    store.reset();
    fs::remove_all(killed());
    fs::rename(copy, killed());
  }
  /// More than two sectors of the log that nobody was promised anything of.
  static void AppendEvents(RunStore& store) {
    for (uint64_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(store.AppendEvent({.sequence = 10 + i, .bytes = std::string(90, 'e')}).ok());
    }
  }

  static absl::StatusOr<std::unique_ptr<RunStore>> OpenIn(const std::string& dir) {
    return OpenRocksDbStore({.data_dir = dir, .create_if_missing = true, .headroom_bytes = 0});
  }
  std::string run() const { return temp_.path() + "/run"; }
  std::string killed() const { return temp_.path() + "/killed"; }
  std::string damaged() const { return temp_.path() + "/damaged"; }
  std::string InDamaged(const std::string& name) const { return JoinPath(damaged(), name); }

  void CopyKilled() {
    fs::remove_all(damaged());
    fs::copy(killed(), damaged(), fs::copy_options::recursive);
  }
  std::vector<std::string> FilesIn(const std::string& folder) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(JoinPath(killed(), folder))) {
      if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), killed()).string());
    }
    return files;
  }
  std::string Log() const {
    for (const std::string& file : FilesIn("meta")) {
      if (file.ends_with(".log")) return file;
    }
    return "";
  }

  /// The payloads on disk and what was accepted, of the open round.
  static std::set<std::string> Accepted(const Recovery& recovery) {
    std::set<std::string> workers;
    for (const Contribution& c : recovery.fragments.at(0).accepted) workers.insert(c.key.worker);
    return workers;
  }

  enum class Tail { kWhole, kMayBeLost };
  /// Opens damaged(): the run as it was, or a refusal that names a file and leaves every byte.
  void ServesOrRejects(const std::string& what, Tail tail = Tail::kWhole) {
    const auto before = TreeOf(damaged());
    auto opened = OpenIn(damaged());
    if (!opened.ok()) {
      ++rejected_;
      EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << what << ": " << opened.status();
      EXPECT_THAT(opened.status().ToString(), AllOf(HasSubstr(damaged()), HasSubstr("Nothing was changed")));
      EXPECT_TRUE(TreeOf(damaged()) == before) << what << " changed something: " << opened.status();
      return;
    }
    ++served_;
    const auto recovery = (*opened)->Recover().value();
    ASSERT_TRUE(recovery.has_value()) << what << ": began a new run";
    ASSERT_EQ(recovery->fragments.size(), 1u) << what << ": is not seeded any more";
    EXPECT_EQ(recovery->fragments[0].head, Version(3)) << what;
    if (tail == Tail::kWhole) {
      EXPECT_EQ(Accepted(*recovery), accepted_) << what;
    }
    for (const std::string& worker : accepted_) {
      const std::string name = ContributionFolder::FileName(model_.KeyOf(worker, Version(3)));
      EXPECT_TRUE(FileExists(InDamaged("contributions/" + name))) << what << ": removed " << name;
    }
  }
  absl::Status Rejection() {
    const auto before = TreeOf(damaged());
    const absl::Status status = OpenIn(damaged()).status();
    EXPECT_TRUE(TreeOf(damaged()) == before) << status;
    return status;
  }

  const TempDir temp_;
  const StoreModel model_ = StoreModel::Make(/*rows=*/60, /*payload_bytes=*/2000);
  std::set<std::string> accepted_ = {"b", "c"};
  int served_ = 0, rejected_ = 0;
};

TEST_F(DamageTest, ABitOfTheLogIsNeverTakenForATornTail) {
  MakeRun();
  const std::string log = Log();
  const std::string bytes = ReadFile(JoinPath(killed(), log)).value();
  ASSERT_GT(bytes.size(), 5000u);
  for (size_t at = 0; at < bytes.size(); at += 71) {
    CopyKilled();
    Write(InDamaged(log), Flipped(bytes, at));
    ServesOrRejects(absl::StrCat("bit at byte ", at, " of ", bytes.size()));
  }
  EXPECT_EQ(served_, 0) << "every byte of a log has a checksum";
}

TEST_F(DamageTest, ACutLogNeverTakesWhatOtherFilesKnowOf) {
  MakeRun();
  const std::string log = Log();
  const std::string bytes = ReadFile(JoinPath(killed(), log)).value();
  for (size_t size = 0; size < bytes.size(); size += size % 512 == 0 ? 201 : 512 - size % 512) {
    CopyKilled();
    Write(InDamaged(log), bytes.substr(0, size));
    ServesOrRejects(absl::StrCat("cut to ", size, " of ", bytes.size()), Tail::kMayBeLost);
  }
  EXPECT_GT(served_, 0) << "a power cut may take events";
  EXPECT_GT(rejected_, 0);
}

TEST_F(DamageTest, WhatAPowerCutLeavesIsServed) {
  MakeRun();
  const std::string log = Log();
  const std::string bytes = ReadFile(JoinPath(killed(), log)).value();
  const size_t sector = bytes.size() / 512 * 512 - 512;  // among the last events
  CopyKilled();
  Write(InDamaged(log), bytes.substr(0, sector));
  ServesOrRejects("cut at a sector");
  CopyKilled();
  Write(InDamaged(log), std::string(bytes).replace(sector, 512, std::string(512, '\0')));
  ServesOrRejects("a sector that was not written, and one behind it that was");
  CopyKilled();
  Write(InDamaged(log), bytes.substr(0, sector) + std::string(4096, '\0'));
  ServesOrRejects("zeros at the end");
  EXPECT_EQ(served_, 3);
}

TEST_F(DamageTest, AMissingFileOfADatabaseIsNamedAndNothingElseGoes) {
  MakeRun();
  for (int life = 1; life <= 2; ++life) {
    for (const std::string folder : {"meta", "shards"}) {
      for (const std::string& file : FilesIn(folder)) {
        CopyKilled();
        ASSERT_TRUE(RemoveFile(InDamaged(file)).ok());
        ServesOrRejects(absl::StrCat("life ", life, " without ", file));
      }
    }
    if (life == 2) break;
    MakeSecondLife();
    accepted_.insert("d");
  }
  for (const std::string folder : {"meta", "shards", "shards/01"}) {
    CopyKilled();
    ASSERT_TRUE(RemoveAll(InDamaged(folder)).ok());
    ServesOrRejects("without " + folder);
    CopyKilled();
    ASSERT_TRUE(RemoveAll(InDamaged(folder)).ok());
    ASSERT_TRUE(CreateDirs(InDamaged(folder)).ok());
    ServesOrRejects("with an empty " + folder);
  }
  EXPECT_GE(rejected_, 20);
  CopyKilled();
  ASSERT_TRUE(RemoveFile(InDamaged("shards/01/CURRENT")).ok());
  EXPECT_THAT(Rejection().ToString(), HasSubstr("shards/01/CURRENT is missing"));
  CopyKilled();
  ASSERT_TRUE(RemoveFile(InDamaged("meta/CURRENT")).ok());
  EXPECT_THAT(Rejection().ToString(), HasSubstr("meta/CURRENT is missing"));
}

TEST_F(DamageTest, DamageToAnyOtherFileOfTheRecordsIsSeen) {
  MakeRun();
  MakeSecondLife();
  accepted_.insert("d");
  for (const std::string& file : FilesIn("meta")) {
    const std::string bytes = ReadFile(JoinPath(killed(), file)).value();
    const size_t step = std::max<size_t>(1, bytes.size() / 11);
    // These say how the database was made; the run does not depend on them.
    if (file.find("OPTIONS") != std::string::npos) continue;
    for (size_t at = 0; at < bytes.size(); at += step) {
      CopyKilled();
      Write(InDamaged(file), Flipped(bytes, at));
      ServesOrRejects(absl::StrCat("bit at byte ", at, " of ", file));
    }
    for (size_t size = 0; size < bytes.size(); size += 3 * step) {
      CopyKilled();
      Write(InDamaged(file), bytes.substr(0, size));
      ServesOrRejects(absl::StrCat(file, " cut to ", size), Tail::kMayBeLost);
    }
  }
}

TEST_F(DamageTest, ADamagedPayloadOfTheOpenRoundIsNamed) {
  MakeRun();
  const std::string name =
      absl::StrCat("contributions/", ContributionFolder::FileName(model_.KeyOf("b", Version(3))));
  const std::string bytes = ReadFile(JoinPath(killed(), name)).value();
  for (size_t at = 0; at < bytes.size(); at += 333) {
    CopyKilled();
    Write(InDamaged(name), Flipped(bytes, at));
    const absl::Status rejected = Rejection();
    EXPECT_EQ(rejected.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(rejected.ToString(), AllOf(HasSubstr(name), HasSubstr("crc32c")));
  }
}

TEST_F(DamageTest, AnUploadThatWasNeverAcknowledgedIsNoDamage) {
  MakeRun();
  CopyKilled();
  for (const auto& [worker, base] : {std::pair("x", 3), std::pair("y", 1)}) {
    Write(InDamaged(absl::StrCat("contributions/", ContributionFolder::FileName(model_.KeyOf(
                                                       worker, Version(static_cast<uint64_t>(base)))))),
          std::string(2000, 'x'));
  }
  ServesOrRejects("uploads in flight");
  EXPECT_EQ(served_, 1);
}

TEST_F(DamageTest, TheFirstMomentsOfARunAreNoDamage) {
  const auto starts = [this] {
    auto opened = OpenIn(damaged());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_FALSE((*opened)->Recover().value().has_value());
    ASSERT_TRUE(model_.CreateRun(**opened).ok());
    ASSERT_TRUE(model_.Seed(**opened).ok());
  };
  // Killed before the database of the records was complete.
  ASSERT_TRUE(CreateDirs(InDamaged("meta")).ok());
  ASSERT_TRUE(CreateDirs(InDamaged("sst")).ok());
  Write(InDamaged("meta/MANIFEST-000001"), "");
  starts();
  // Killed when the shards were there, and the record of the run was not.
  fs::remove_all(damaged());
  ASSERT_TRUE(OpenIn(damaged()).ok());
  ASSERT_TRUE(model_.CreateRun(**OpenIn(run())).ok());
  fs::copy(JoinPath(run(), "shards"), InDamaged("shards"), fs::copy_options::recursive);
  starts();
}

TEST_F(DamageTest, ACheckpointAmongThoseOfARunIsNotServedInPlace) {
  MakeRun();
  auto store = OpenIn(killed()).value();
  ASSERT_TRUE(store->CreateCheckpoint({.name = "ck", .software_version = "test"}).ok());
  store.reset();
  const auto before = TreeOf(killed());
  for (const std::string& path :
       {killed() + "/checkpoints/ck", killed() + "/checkpoints/../checkpoints/ck/"}) {
    const absl::Status rejected = OpenIn(path).status();
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << rejected;
    EXPECT_THAT(rejected.ToString(), AllOf(HasSubstr(killed()), HasSubstr("Copy the folder")));
  }
  EXPECT_TRUE(TreeOf(killed()) == before);
  fs::copy(killed() + "/checkpoints/ck", damaged(), fs::copy_options::recursive);
  EXPECT_TRUE(OpenIn(damaged()).ok());
}

TEST_F(DamageTest, AFolderNamedCheckpointsIsNotAlwaysOfARun) {
  fs::create_directories(InDamaged("meta"));
  EXPECT_TRUE(OpenIn(InDamaged("checkpoints/run1")).ok()) << "there is no run around it";
}

}  // namespace
}  // namespace atl
