#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/checkpoint_manifest.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

// What the RocksDB store's checkpoints look like on disk, and what damage does to them.

namespace atl {
namespace {

using testing::HasSubstr;

void FlipByte(const std::string& path, uint64_t offset) {
  auto file = DurableFile::Open(path, OpenMode::kOpenExisting);
  ASSERT_TRUE(file.ok()) << file.status();
  std::byte byte{};
  ASSERT_TRUE(file->ReadAt(offset, {&byte, 1}).ok());
  byte ^= std::byte{0x10};
  ASSERT_TRUE(file->WriteAt(offset, {&byte, 1}).ok());
}

class CheckpointTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RunStore>> OpenDir(const std::string& dir) {
    return OpenRocksDbStore({.data_dir = dir, .create_if_missing = true, .headroom_bytes = 0});
  }
  void SetUp() override {
    auto opened = OpenDir(dir());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    ASSERT_TRUE(store_->Recover().ok());
    ASSERT_TRUE(model_.CreateRun(*store_).ok());
    ASSERT_TRUE(model_.Seed(*store_).ok());
    Round(1);
    ASSERT_TRUE(model_.Store(*store_, Version(1), 2).ok());
    Round(2);  // committed, its tensors are not stored
    ASSERT_TRUE(model_.Push(*store_, model_.KeyOf("w", Version(2))).ok());
  }
  void Round(uint64_t version) {
    const absl::Status pushed = model_.Push(*store_, model_.KeyOf("w", Version(version - 1)));
    ASSERT_TRUE(pushed.ok() || absl::IsAlreadyExists(pushed)) << pushed;
    ASSERT_TRUE(model_.Commit(*store_, Version(version), "w").ok());
  }
  CheckpointEntry Make(const std::string& name) {
    auto made = store_->CreateCheckpoint({.name = name, .created_unix_ns = 1, .software_version = "test"});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : CheckpointEntry{};
  }
  std::string dir() const { return temp_.path() + "/run"; }
  std::string FolderOf(const std::string& name) const { return dir() + "/checkpoints/" + name; }
  /// The payload of worker w on this base.
  std::string PayloadIn(const std::string& folder, Version base) const {
    return folder + "/contributions/" + ContributionFolder::FileName(model_.KeyOf("w", base));
  }
  /// What a coordinator finds that starts on a copy of this folder.
  absl::StatusOr<Recovery> RecoveryOfCopy(const std::string& folder) {
    const std::string copy = temp_.path() + "/copy";
    ATOLL_RETURN_IF_ERROR(RemoveAll(copy));
    std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
    ATOLL_ASSIGN_OR_RETURN(const auto store, OpenDir(copy));
    ATOLL_ASSIGN_OR_RETURN(auto recovery, store->Recover());
    return *std::move(recovery);
  }
  /// The first file whose path holds this.
  static CheckpointFile FileLike(const CheckpointEntry& entry, const std::string& part) {
    for (const CheckpointFile& file : entry.manifest.files) {
      if (absl::StrContains(file.path, part) && file.bytes > 100) return file;
    }
    ADD_FAILURE() << "no file like " << part;
    return {};
  }

  const TempDir temp_;
  const StoreModel model_ = StoreModel::Make(64, 5000);
  std::unique_ptr<RunStore> store_;
};

TEST_F(CheckpointTest, TensorsAndPayloadsAreSharedNotCopied) {
  const uint64_t before = *store_->DiskBytes();
  const CheckpointEntry entry = Make("one");
  EXPECT_GT(entry.shared_bytes, model_.layout.elements * 2 * sizeof(float));
  EXPECT_LT(*store_->DiskBytes() - before, entry.bytes - entry.shared_bytes + 20000);
  struct stat info;
  ASSERT_EQ(::stat((entry.path + "/" + FileLike(entry, "contributions/").path).c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
  ASSERT_EQ(::stat((entry.path + "/" + FileLike(entry, "shards/00/").path).c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
  EXPECT_EQ(ReadFile(entry.path + "/checkpoint.json").value(), EncodeCheckpointManifest(entry.manifest));
}

TEST_F(CheckpointTest, ReadingItChangesNothing) {
  const CheckpointEntry entry = Make("one");
  for (int i = 0; i < 2; ++i) {
    const auto opened = store_->OpenCheckpoint("one", CheckpointUse::kRestore);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE(opened->source->ReadVersion(model_.layout, Version(1)).ok());
  }
  EXPECT_EQ(SealFiles(entry.path)->size(), entry.manifest.files.size() + 1);  // the manifest itself
}

TEST_F(CheckpointTest, ANoteTellsTheNextStartOfARestoreThatDidNotEnd) {
  Make("one");
  const std::string path = dir() + "/restore.begun";
  std::string note;
  {
    const auto opened = store_->OpenCheckpoint("one", CheckpointUse::kRead);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_FALSE(FileExists(path)) << "nothing is restored";
  }
  {
    const auto opened = store_->OpenCheckpoint("one", CheckpointUse::kRestore);
    ASSERT_TRUE(opened.ok()) << opened.status();
    note = ReadFile(path).value_or("");
  }
  EXPECT_FALSE(FileExists(path)) << "it ended";
  const auto told_by = [&](const std::string& left) {
    store_.reset();
    EXPECT_TRUE(WriteFileAtomically(path, left).ok());
    auto store = OpenDir(dir());
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    return (*store_->Recover())->interrupted_restore;
  };
  const auto told = told_by(note);
  ASSERT_TRUE(told.has_value()) << note;
  EXPECT_EQ(told->checkpoint, "one");
  EXPECT_FALSE(told->done) << "the epoch is the same";
  EXPECT_TRUE(told_by("1\none\n")->done) << "this is another epoch";
  EXPECT_TRUE(FileExists(path)) << "it stays until the run is served";
  ASSERT_TRUE(store_->AppendEvent({.sequence = 1, .bytes = "served"}).ok());
  EXPECT_FALSE(FileExists(path)) << "it is told once";
  for (const char* garbage : {"", "x\none\n", "1", "1\n../up\n"}) EXPECT_FALSE(told_by(garbage).has_value());
}

TEST_F(CheckpointTest, ANoteThatWasNeverWholeIsRemoved) {
  store_.reset();
  const std::vector<std::string> left = {dir() + "/restore.begun.tmp.4711", dir() + "/epoch.begun.tmp.1"};
  for (const std::string& path : left) ASSERT_TRUE(WriteFileAtomically(path, "1").ok());
  const std::string of_others = dir() + "/restore.begun.tmp.mine";
  ASSERT_TRUE(WriteFileAtomically(of_others, "1").ok());
  auto store = OpenDir(dir());
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  for (const std::string& path : left) EXPECT_FALSE(FileExists(path)) << path;
  EXPECT_TRUE(FileExists(of_others));
}

TEST_F(CheckpointTest, EveryDamagedFileIsNamedAndNothingIsUsed) {
  const CheckpointEntry whole = Make("whole");
  for (const CheckpointFile& file : whole.manifest.files) {
    if (file.bytes == 0) continue;
    const std::string copy = temp_.path() + "/damaged";
    ASSERT_TRUE(RemoveAll(copy).ok());
    std::filesystem::copy(whole.path, copy, std::filesystem::copy_options::recursive);
    FlipByte(copy + "/" + file.path, file.bytes / 2);
    const absl::Status opened = OpenDir(copy).status();
    EXPECT_EQ(opened.code(), absl::StatusCode::kDataLoss) << opened;
    EXPECT_THAT(opened.ToString(), HasSubstr(file.path));
    EXPECT_TRUE(FileExists(copy + "/checkpoint.json")) << "a refused checkpoint stays what it is";
  }
  ASSERT_TRUE(RemoveFile(whole.path + "/" + FileLike(whole, ".sst").path).ok());
  EXPECT_THAT(store_->OpenCheckpoint("whole", CheckpointUse::kRestore).status().ToString(),
              HasSubstr("is missing"));
  const auto listed = store_->ListCheckpoints(false);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_THAT((*listed)[0].damage, HasSubstr("is missing"));
}

TEST_F(CheckpointTest, ADamagedPushOfTheOpenRoundDoesNotEnterIt) {
  std::filesystem::resize_file(PayloadIn(dir(), Version(2)), 10);
  const CheckpointEntry entry = Make("one");
  EXPECT_FALSE(FileExists(PayloadIn(entry.path, Version(2))));
  EXPECT_TRUE(entry.left_out.empty());
  EXPECT_EQ((*store_->ListCheckpoints(true))[0].damage, "");
  const auto recovery = RecoveryOfCopy(entry.path);
  ASSERT_TRUE(recovery.ok()) << recovery.status();
  EXPECT_EQ(recovery->fragments[0].head, Version(2));
  EXPECT_TRUE(recovery->fragments[0].accepted.empty());
}

TEST_F(CheckpointTest, IsNotMadeWithoutAPayloadThatItsHeadNeeds) {
  const std::string payload = PayloadIn(dir(), Version(1));
  const uint64_t size = FileSize(payload).value();
  const auto rejected = [&](const std::string& how) {
    const auto made = store_->CreateCheckpoint({.name = "one", .created_unix_ns = 1});
    EXPECT_EQ(made.status().code(), absl::StatusCode::kDataLoss) << made.status();
    EXPECT_THAT(made.status().ToString(), HasSubstr(PayloadIn("", Version(1)).substr(1)));
    EXPECT_THAT(made.status().ToString(), HasSubstr(how));
    EXPECT_THAT(made.status().ToString(), HasSubstr("when the coordinator has stored that version"));
    EXPECT_FALSE(FileExists(FolderOf("one")));
  };
  FlipByte(payload, size / 2);
  rejected("crc32c");
  std::filesystem::resize_file(payload, 10);
  rejected("has 10 bytes instead of");
  ASSERT_TRUE(RemoveFile(payload).ok());
  rejected("is missing");
  // Stored, the version is no longer rebuilt from it; what is left out is told.
  ASSERT_TRUE(model_.Store(*store_, Version(2), 2).ok());
  const CheckpointEntry entry = Make("one");
  ASSERT_EQ(entry.left_out.size(), 1u);
  EXPECT_EQ("/" + entry.left_out[0], PayloadIn("", Version(1)));
  EXPECT_EQ((*store_->ListCheckpoints(true))[0].damage, "");
  EXPECT_TRUE(RecoveryOfCopy(entry.path).ok());
}

TEST_F(CheckpointTest, OneWithTheOpenRoundIsJudgedByWhatIsNeeded) {
  // As older programs made them: all that was accepted, with the sizes and checksums found at that moment.
  store_.reset();
  const auto make = [&](const std::string& name, Version damaged) {
    ASSERT_TRUE(CreateDirs(FolderOf(name)).ok());
    for (const char* part : {"meta", "shards", "contributions"}) {
      std::filesystem::copy(dir() + "/" + part, FolderOf(name) + "/" + part,
                            std::filesystem::copy_options::recursive);
    }
    std::filesystem::resize_file(PayloadIn(FolderOf(name), damaged), 10);
    CheckpointManifest manifest{.name = name, .epoch = model_.identity.epoch, .versions = {Version(2)}};
    manifest.files = SealFiles(FolderOf(name)).value();
    ASSERT_TRUE(
        WriteFileAtomically(FolderOf(name) + "/checkpoint.json", EncodeCheckpointManifest(manifest)).ok());
  };
  make("needless", Version(2));
  make("needed", Version(1));
  make("later", Version(0));
  std::filesystem::resize_file(PayloadIn(FolderOf("later"), Version(2)), 20);  // since it was made
  auto opened = OpenDir(dir());
  ASSERT_TRUE(opened.ok()) << opened.status();
  for (const bool contents : {false, true}) {
    const auto entries = (*opened)->ListCheckpoints(contents);
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const CheckpointEntry& entry : *entries) {
      const bool damaged = contents && entry.manifest.name == "needed";
      EXPECT_EQ(entry.damage.empty(), !damaged) << entry.manifest.name << ": " << entry.damage;
    }
  }
  EXPECT_TRUE(RecoveryOfCopy(FolderOf("needless")).ok());
  EXPECT_TRUE(RecoveryOfCopy(FolderOf("later")).ok());
  const auto recovery = RecoveryOfCopy(FolderOf("needed"));
  EXPECT_THAT(recovery.status().ToString(), HasSubstr("has 10 bytes instead of"));
  EXPECT_THAT(recovery.status().ToString(), HasSubstr("use another checkpoint"));
}

TEST_F(CheckpointTest, ADamagedManifestIsRejected) {
  const CheckpointEntry entry = Make("one");
  const std::string manifest = entry.path + "/checkpoint.json";
  const std::string text = ReadFile(manifest).value();
  for (size_t i = 0; i < text.size(); i += 7) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    const auto decoded = DecodeCheckpointManifest(bad, "here");
    if (decoded.ok()) {
      EXPECT_EQ(*decoded, entry.manifest) << i;  // a flip in white space
    }
  }
  EXPECT_FALSE(DecodeCheckpointManifest(text.substr(0, text.size() / 2), "here").ok());
  ASSERT_TRUE(WriteFileAtomically(manifest, text.substr(0, text.size() / 2)).ok());
  EXPECT_EQ(store_->OpenCheckpoint("one", CheckpointUse::kRestore).status().code(),
            absl::StatusCode::kDataLoss);
  const auto listed = store_->ListCheckpoints(false);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_THAT((*listed)[0].damage, HasSubstr("checkpoint.json"));
}

TEST_F(CheckpointTest, AManifestCannotNameFilesOutside) {
  CheckpointManifest manifest = Make("one").manifest;
  for (const char* path : {"/etc/passwd", "../up", "a/../../b", "", "..", "a/.."}) {
    manifest.files = {{.path = path, .bytes = 1, .crc32c = 2}};
    EXPECT_EQ(DecodeCheckpointManifest(EncodeCheckpointManifest(manifest), "x").status().code(),
              absl::StatusCode::kDataLoss)
        << path;
  }
}

TEST_F(CheckpointTest, UnfinishedOnesGoAtTheNextStart) {
  Make("good");
  ASSERT_TRUE(CreateDirs(FolderOf("half") + "/meta").ok());
  ASSERT_TRUE(WriteFileAtomically(FolderOf("half") + "/meta/CURRENT", "x").ok());
  ASSERT_TRUE(WriteFileAtomically(dir() + "/checkpoints/NOTES.txt", "an operator's").ok());
  EXPECT_EQ(store_->ListCheckpoints(false)->size(), 1u);
  store_.reset();
  auto opened = OpenDir(dir());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(FileExists(FolderOf("half")));
  EXPECT_TRUE(FileExists(dir() + "/checkpoints/NOTES.txt"));
  EXPECT_EQ((*opened)->ListCheckpoints(true)->size(), 1u);
}

TEST_F(CheckpointTest, ACopiedCheckpointIsADataDirectoryUntilItsEpochBegins) {
  const CheckpointEntry entry = Make("one");
  const std::string copy = temp_.path() + "/elsewhere";
  std::filesystem::copy(entry.path, copy, std::filesystem::copy_options::recursive);
  for (int life = 0; life < 2; ++life) {  // opened, and given up before the epoch began
    auto opened = OpenDir(copy);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto recovery = (*opened)->Recover().value();
    ASSERT_TRUE(recovery->checkpoint.has_value());
    EXPECT_EQ(recovery->checkpoint->name, "one");
    EXPECT_EQ(recovery->fragments[0].head, Version(2));
    EXPECT_FALSE(FileExists(copy + "/checkpoint.json"));
  }
  auto opened = OpenDir(copy);
  const auto recovery = (*opened)->Recover().value();
  RoundRecord record;
  record.epoch = Epoch(99);
  record.version = Version(3);
  record.config_version = 1;
  const FragmentTensors tensors = model_.TensorsAt(Version(2));
  ASSERT_TRUE((*opened)
                  ->BeginEpoch({.epoch = Epoch(99),
                                .layouts = {model_.layout},
                                .tensors = {ViewOf(tensors)},
                                .records = {record},
                                .partitions = {}})
                  .ok());
  opened->reset();
  auto again = OpenDir(copy);
  const auto found = (*again)->Recover().value();
  EXPECT_FALSE(found->checkpoint.has_value());
  EXPECT_EQ(found->identity.epoch, Epoch(99));
  EXPECT_EQ((*again)->ReadVersion(model_.layout, Version(3))->parameters, tensors.parameters);
  // The run that it was made of is untouched, and so is the checkpoint.
  EXPECT_EQ((*store_->ListCheckpoints(true))[0].damage, "");
}

TEST_F(CheckpointTest, IsConsistentWhateverGoesOn) {
  std::atomic<bool> stop = false;
  std::thread rounds([&] {
    for (uint64_t version = 3; !stop; ++version) {
      Round(version);
      ASSERT_TRUE(model_.Store(*store_, Version(version), 1).ok());
    }
  });
  std::thread pushes([&] {
    for (uint64_t i = 0; !stop; ++i) {
      const Version base = store_->Stored(FragmentId(0))->versions.back();
      (void)model_.Push(*store_, model_.KeyOf("p" + std::to_string(i), base));
    }
  });
  for (int i = 0; i < 12; ++i) {
    const CheckpointEntry entry = Make("c" + std::to_string(i));
    const auto opened = store_->OpenCheckpoint("c" + std::to_string(i), CheckpointUse::kRestore);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const Version stored = opened->recovery.fragments[0].stored;
    EXPECT_EQ(opened->source->ReadVersion(model_.layout, stored)->parameters,
              model_.TensorsAt(stored).parameters);
    const std::string copy = temp_.path() + "/copy";
    ASSERT_TRUE(RemoveAll(copy).ok());
    std::filesystem::copy(entry.path, copy, std::filesystem::copy_options::recursive);
    const absl::Status opens = OpenDir(copy).status();  // checks payloads and shards too
    EXPECT_TRUE(opens.ok()) << opens;
  }
  stop = true;
  rounds.join();
  pushes.join();
}

TEST_F(CheckpointTest, LinksThatCannotBeMadeAreCopies) {
  const std::string from = temp_.path() + "/from";
  ASSERT_TRUE(WriteFileAtomically(from, std::string(3 << 20, 'x')).ok());
  ASSERT_TRUE(LinkOrCopy(from, temp_.path() + "/linked").ok());
  struct stat info;
  ASSERT_EQ(::stat(from.c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
  EXPECT_EQ(LinkOrCopy(temp_.path() + "/nothing", temp_.path() + "/to").code(), absl::StatusCode::kDataLoss);
  // Another file system, where there is one.
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no second file system to copy to";
  const std::string elsewhere = "/dev/shm/atoll-copy-" + std::to_string(::getpid());
  ASSERT_TRUE(LinkOrCopy(from, elsewhere).ok());
  EXPECT_EQ(ReadFile(elsewhere).value(), ReadFile(from).value());
  ASSERT_TRUE(RemoveFile(elsewhere).ok());
}

}  // namespace
}  // namespace atl
