#include "server/admin/stored_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

StoredFragment Fragment(const std::vector<uint64_t>& stored, uint64_t head) {
  StoredFragment fragment{.stored = {}, .head = Version(head)};
  for (const uint64_t version : stored) fragment.stored.emplace_back(version);
  return fragment;
}

auto Choose(const std::vector<StoredFragment>& fragments, SyncMode mode = SyncMode::kBlocking,
            std::optional<uint64_t> asked = std::nullopt) {
  return ChooseStored(fragments, mode, asked ? std::optional(Version(*asked)) : std::nullopt);
}

TEST(StoredChoice, TheNewestVersionIsTheHeadOnceItIsStored) {
  EXPECT_THAT(Choose({Fragment({3, 4}, 4)}).value(), ElementsAre(Version(4)));
  const auto soon = Choose({Fragment({3, 4}, 5)});
  EXPECT_TRUE(absl::IsUnavailable(soon.status())) << soon.status();
  EXPECT_THAT(soon.status().message(),
              AllOf(HasSubstr("version 5 is published, but not stored yet"), HasSubstr("3, 4")));
  // A head that was read before the version that is stored now.
  EXPECT_THAT(Choose({Fragment({4, 6}, 5)}).value(), ElementsAre(Version(6)));
}

TEST(StoredChoice, FragmentsOfABlockingRunHaveOneVersion) {
  EXPECT_THAT(Choose({Fragment({3, 4}, 4), Fragment({2, 3}, 3)}).value(),
              ElementsAre(Version(3), Version(3)));
  EXPECT_TRUE(absl::IsUnavailable(Choose({Fragment({4}, 4), Fragment({3}, 4)}).status()));
  EXPECT_THAT(Choose({Fragment({4}, 4), Fragment({3}, 3)}, SyncMode::kOverlapped).value(),
              ElementsAre(Version(4), Version(3)));
  const auto soon = Choose({Fragment({4}, 4), Fragment({3}, 4)}, SyncMode::kOverlapped);
  EXPECT_THAT(soon.status().ToString(), AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("of fragment 1")));
}

TEST(StoredChoice, AVersionThatIsNotThereIsNamedWithThoseThatAre) {
  const std::vector<StoredFragment> run = {Fragment({7, 8}, 9)};
  EXPECT_THAT(Choose(run, SyncMode::kBlocking, 7).value(), ElementsAre(Version(7)));
  const auto gone = Choose(run, SyncMode::kBlocking, 3);
  EXPECT_THAT(
      gone.status().ToString(),
      AllOf(HasSubstr("NOT_FOUND"), HasSubstr("version 3 is not kept any more; stored versions: 7, 8"),
            HasSubstr("checkpoint.keep_versions")));
  EXPECT_THAT(Choose(run, SyncMode::kBlocking, 10).status().ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("no version 10 yet; the newest version is 9")));
  EXPECT_TRUE(absl::IsUnavailable(Choose(run, SyncMode::kBlocking, 9).status()));
  // Storing skips versions of runs with short rounds.
  EXPECT_TRUE(absl::IsNotFound(Choose({Fragment({5, 8}, 9)}, SyncMode::kBlocking, 6).status()));
  EXPECT_THAT(Choose({Fragment({1, 2}, 2), Fragment({3}, 3)}, SyncMode::kOverlapped, 2).status().ToString(),
              HasSubstr("version 2 of fragment 1 is not kept"));
}

TEST(StoredChoice, ARunWithoutParametersHasNone) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Choose({}).status()));
}

}  // namespace
}  // namespace atl
