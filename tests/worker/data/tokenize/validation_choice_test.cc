#include "worker/data/tokenize/validation_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using By = ValidationChoice::By;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Fault(const std::vector<std::string>& texts) {
  return std::string(ParseValidation(texts).status().message());
}

TEST(ValidationChoiceTest, ReadsItsForms) {
  EXPECT_EQ(ParseValidation({"0.1"})->share, 0.1);
  EXPECT_EQ(ParseValidation({"share:0.1"})->by, By::kShare);
  EXPECT_EQ(ParseValidation({"hash:0.25"})->by, By::kHash);
  EXPECT_EQ(ParseValidation({"hash:0.25"})->share, 0.25);
  const auto files = ParseValidation({"file:a:b", "file:c"});
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->by, By::kFiles);
  EXPECT_THAT(files->files, ElementsAre("a:b", "c"));
}

TEST(ValidationChoiceTest, RejectsOthers) {
  EXPECT_THAT(Fault({"val.txt"}), HasSubstr("file:NAME"));
  EXPECT_THAT(Fault({"file:"}), HasSubstr("names no file"));
  for (const char* number : {"0", "1", "-0.5", "nan", "hash:2"})
    EXPECT_THAT(Fault({number}), HasSubstr("above 0"));
  EXPECT_THAT(Fault({"0.1", "0.2"}), HasSubstr("several times"));
  EXPECT_THAT(Fault({"file:a", "hash:0.2"}), HasSubstr("several times"));
}

TEST(ValidationChoiceTest, TheShareIsOfAllHashes) {
  const ValidationChoice choice = {.by = By::kHash, .share = 0.25, .files = {}};
  EXPECT_TRUE(choice.HoldsOut(0));
  EXPECT_TRUE(choice.HoldsOut(0x3fff'0000'0000'0000));
  EXPECT_FALSE(choice.HoldsOut(0x4000'0000'0000'0000));
  EXPECT_FALSE(choice.HoldsOut(UINT64_MAX));
}

}  // namespace
}  // namespace atl
