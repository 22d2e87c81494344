#include "client/sync/identity.h"

#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "core/membership.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-identity-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(path_).ok()); }

  absl::StatusOr<WorkerIdentity> Load(std::string_view wanted) {
    auto directory = StateDirectory::Open(JoinPath(path_, "state"));
    if (!directory.ok()) return directory.status();
    return directory->LoadOrCreate(wanted);
  }

  absl::Status Claim() {
    auto directory = StateDirectory::Open(JoinPath(path_, "state"));
    return directory.ok() ? directory->Claim() : directory.status();
  }

  std::string path_;
};

TEST_F(IdentityTest, IsMadeOnceAndKept) {
  const auto made = Load("island-1");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->name, "island-1");
  EXPECT_EQ(made->secret.size(), 32u);
  for (const char* wanted : {"island-1", ""}) {
    const auto again = Load(wanted);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->name, made->name);
    EXPECT_EQ(again->secret, made->secret);
  }
  struct stat info {};
  ASSERT_EQ(::stat(JoinPath(path_, "state/identity").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(IdentityTest, AKeyThatIsNoFileIsDamagedAndSaysWhatToDo) {
  ASSERT_TRUE(Load("a").ok());
  const std::string key = JoinPath(path_, "state/key");
  ASSERT_TRUE(CreateDirs(key).ok());
  const auto state = StateDirectory::Open(JoinPath(path_, "state"));
  ASSERT_TRUE(state.ok()) << state.status();
  const absl::Status rejected = state->LoadOrCreateKey().status();
  EXPECT_EQ(rejected.code(), absl::StatusCode::kDataLoss) << rejected;
  EXPECT_THAT(std::string(rejected.message()), AllOf(HasSubstr(key), HasSubstr("remove it")));
}

TEST_F(IdentityTest, TheDefaultNameIsValid) {
  const auto made = Load("");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(ValidateWorkerName(made->name).ok()) << made->name;
}

TEST_F(IdentityTest, ANameThatNeverJoinedIsReplaced) {
  const auto wrong = Load("a");
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  const auto right = Load("b");
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->name, "b");
  EXPECT_NE(right->secret, wrong->secret) << "the secret of another name was sent to somebody already";
  ASSERT_TRUE(Claim().ok());
  EXPECT_EQ(Load("a").status().code(), absl::StatusCode::kFailedPrecondition);
  const auto again = Load("");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name, "b");
  EXPECT_EQ(again->secret, right->secret);
}

TEST_F(IdentityTest, AnIdentityOfAnEarlierVersionIsClaimed) {
  ASSERT_TRUE(CreateDirs(JoinPath(path_, "state")).ok());
  const std::string text = R"({"name": "a", "secret": ")" + std::string(64, '7') + "\"}";
  ASSERT_TRUE(WriteFileAtomically(JoinPath(path_, "state/identity"), text).ok());
  EXPECT_TRUE(Load("a").ok());
  EXPECT_EQ(Load("b").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(IdentityTest, ANameIsNotChangedSilently) {
  ASSERT_TRUE(Load("a").ok());
  ASSERT_TRUE(Claim().ok());
  const auto other = Load("b");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("belongs to worker 'a', not to 'b'"));
}

TEST_F(IdentityTest, ABadNameIsRejected) {
  EXPECT_EQ(Load("Not A Name").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(IdentityTest, DamageIsSaid) {
  ASSERT_TRUE(Load("a").ok());
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{\"name\": \"a\"}"),
                                  std::string("{\"name\": \"a\", \"secret\": \"12\"}"),
                                  std::string("{\"name\": 3, \"secret\": \"x\"}"), std::string(5000, '{')}) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(path_, "state/identity"), text).ok());
    const auto loaded = Load("a");
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("state/identity is damaged")) << text;
  }
}

TEST_F(IdentityTest, OneProcessAtATime) {
  const auto first = StateDirectory::Open(JoinPath(path_, "state"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Load("").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MakeWorkerNameTest, KeepsWhatItCan) {
  EXPECT_EQ(MakeWorkerName("Node_7.example.COM", 63), "node-7.example.com");
  EXPECT_EQ(MakeWorkerName("--x", 63), "x");
  EXPECT_EQ(MakeWorkerName("***", 63), "worker");
  EXPECT_EQ(MakeWorkerName("abcdef", 3), "abc");
}

}  // namespace
}  // namespace atl
