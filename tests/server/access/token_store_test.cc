#include "server/access/token_store.h"

#include <sys/stat.h>

#include "common/exit_codes.h"
#include "common/file.h"
#include "common/token_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/fake_clock.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TokenStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    auto store = TokenStore::Open(dir_.File("access"), &clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  NewToken Make(Role role, const std::string& name, std::optional<Duration> lifetime = std::nullopt) {
    const auto made = store_->Create({.role = role, .name = name, .lifetime = lifetime, .created_by = "ann"});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(NewToken());
  }
  std::string WhyNot(const std::string& text) const {
    const auto found = store_->Find(text);
    EXPECT_TRUE(absl::IsUnauthenticated(found.status())) << found.status();
    EXPECT_THAT(std::string(found.status().message()), Not(HasSubstr(text)));
    return std::string(found.status().message());
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  FakeClock clock_;
  TestDir dir_;
  std::unique_ptr<TokenStore> store_;
};

TEST_F(TokenStoreTest, KnowsWhomATokenStandsForAlsoAfterARestart) {
  const NewToken worker = Make(Role::kWorker, "w3");
  const NewToken admin = Make(Role::kAdmin, "ann");
  EXPECT_NE(worker.text, admin.text);
  for (int life = 0; life < 2; ++life, Open()) {
    const auto found = store_->Find(worker.text);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->role, Role::kWorker);
    EXPECT_EQ(found->name, "w3");
    EXPECT_EQ(found->id, worker.record.id);
    EXPECT_EQ(store_->Find(admin.text)->role, Role::kAdmin);
    EXPECT_EQ(store_->List().size(), 2u);
  }
}

TEST_F(TokenStoreTest, KeepsNoSecretAndLetsNobodyElseRead) {
  const NewToken made = Make(Role::kWorker, "w3");
  const std::string path = dir_.File("access/tokens.json");
  const std::string kept = *ReadFile(path);
  EXPECT_THAT(kept, AllOf(HasSubstr(made.record.id), HasSubstr("\"w3\""), HasSubstr("\"ann\"")));
  EXPECT_THAT(kept, Not(HasSubstr(made.text.substr(made.text.rfind('_') + 1))));
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(ModeOf(dir_.File("access")), 0700u);
}

TEST_F(TokenStoreTest, ARevokedTokenIsGoodForNothingFromThenOn) {
  const NewToken made = Make(Role::kWorker, "w3");
  const NewToken other = Make(Role::kWorker, "w4");
  ASSERT_TRUE(store_->Revoke(made.record.id).ok());
  EXPECT_THAT(WhyNot(made.text), AllOf(HasSubstr(made.record.id), HasSubstr("revoked")));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Revoke(made.record.id).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Revoke("00000000").status()));
  Open();
  EXPECT_THAT(WhyNot(made.text), HasSubstr("revoked"));
  EXPECT_TRUE(store_->Find(other.text).ok());
}

TEST_F(TokenStoreTest, ATokenExpires) {
  const NewToken made = Make(Role::kObserver, "grafana", Seconds(60));
  clock_.Advance(Seconds(59));
  EXPECT_TRUE(store_->Find(made.text).ok());
  clock_.Advance(Seconds(1));
  EXPECT_THAT(WhyNot(made.text), AllOf(HasSubstr(made.record.id), HasSubstr("expired")));
}

TEST_F(TokenStoreTest, WhatIsNotATokenIsNotKnown) {
  const NewToken made = Make(Role::kWorker, "w3");
  std::string close = made.text;
  close.back() = close.back() == '0' ? '1' : '0';
  EXPECT_THAT(WhyNot(close), HasSubstr("ask the run's operator"));
  EXPECT_THAT(WhyNot(made.text + "0"), AllOf(HasSubstr("does not know the token"), Not(HasSubstr("--"))))
      << "a web page shows it, too";
  EXPECT_TRUE(absl::IsUnauthenticated(store_->Find("").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(store_->Find(made.record.sha256).status()));
}

TEST_F(TokenStoreTest, RejectsRequestsThatMakeNoSense) {
  const auto rejected = [this](Role role, const std::string& name, std::optional<Duration> lifetime) {
    return absl::IsInvalidArgument(
        store_->Create({.role = role, .name = name, .lifetime = lifetime, .created_by = ""}).status());
  };
  EXPECT_TRUE(rejected(Role::kAdmin, "", std::nullopt));
  EXPECT_TRUE(rejected(Role::kObserver, "a b", std::nullopt));
  EXPECT_TRUE(rejected(Role::kWorker, "W3", std::nullopt));
  EXPECT_TRUE(rejected(Role::kWorker, "w3", Seconds(0)));
  EXPECT_TRUE(store_->List().empty());
  EXPECT_FALSE(FileExists(dir_.File("access/tokens.json")));
}

TEST_F(TokenStoreTest, TheFirstAdminTokenIsLeftInAFileOnce) {
  const auto path = store_->EnsureAdmin();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(ModeOf(*path), 0600u);
  const auto text = ReadTokenFile(*path);
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(store_->Find(*text).ok());
  EXPECT_EQ(store_->Find(*text)->role, Role::kAdmin);
  Open();
  EXPECT_EQ(*store_->EnsureAdmin(), "");
  // Who revokes the last one has a way back: whoever may restart the coordinator and read its files.
  ASSERT_TRUE(store_->Revoke(store_->Find(*text)->id).ok());
  EXPECT_EQ(*store_->EnsureAdmin(), *path);
  EXPECT_NE(*ReadTokenFile(*path), *text);
}

TEST_F(TokenStoreTest, GivenTokensLiveAsLongAsTheProcess) {
  const std::string text = "0123456789abcdef0123456789abcdef";
  ASSERT_TRUE(store_->Give("admin-file", Role::kAdmin, "operator", text).ok());
  EXPECT_EQ(store_->Find(text)->id, "admin-file");
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Revoke("admin-file").status()));
  // Another one in its place.
  ASSERT_TRUE(store_->Give("admin-file", Role::kAdmin, "operator", text + "x").ok());
  EXPECT_THAT(WhyNot(text), HasSubstr("does not know the token"));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Give("admin-file", Role::kAdmin, "operator", "short")));
  Open();
  EXPECT_THAT(WhyNot(text + "x"), HasSubstr("does not know the token"));
}

TEST_F(TokenStoreTest, WhatIsNoFileIsNamedAndSaysWhatToDo) {
  const std::string path = TokenStore::FileIn(dir_.File("access"));
  const auto rejected = [&] { return TokenStore::Open(dir_.File("access"), &clock_).status(); };
  ASSERT_TRUE(RemoveFile(path).ok());
  ASSERT_TRUE(CreateDirs(path).ok());
  EXPECT_EQ(LocalExitCode(rejected()), ExitCode::kBadFiles) << rejected();
  EXPECT_THAT(std::string(rejected().message()), AllOf(HasSubstr(path), HasSubstr("backup")));
  ASSERT_TRUE(RemoveAll(path).ok());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(LocalExitCode(rejected()), ExitCode::kBadFiles) << rejected();
}

TEST_F(TokenStoreTest, ADamagedFileIsNamed) {
  Make(Role::kWorker, "w3");
  const std::string path = dir_.File("access/tokens.json");
  const std::string good = *ReadFile(path);
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string("{\"format\": 2}"), good.substr(0, good.size() / 2),
        std::string("{\"format\":1,\"tokens\":[{}]}")}) {
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    const auto opened = TokenStore::Open(dir_.File("access"), &clock_);
    EXPECT_TRUE(absl::IsDataLoss(opened.status())) << bad;
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace atl
