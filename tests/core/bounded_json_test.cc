#include "core/bounded_json.h"

#include <string>

#include "core/foreign_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

std::string Problem(const std::string& text, const JsonBounds& bounds = {}) {
  const auto json = ParseBoundedJson(text, bounds);
  return json.ok() ? "" : std::string(json.status().message());
}

TEST(BoundedJson, ReadsWhatIsWithinTheBounds) {
  const auto json = ParseBoundedJson(R"({"a": [1, -2, 2.5, true, null, "x"], "b": {"a": {}}})", {});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,2.5,true,null,"x"],"b":{"a":{}}})");
}

TEST(BoundedJson, SaysWhatIsWrong) {
  EXPECT_EQ(Problem(""), "is not JSON");
  EXPECT_EQ(Problem("{"), "is not JSON");
  EXPECT_EQ(Problem("{} x"), "is not JSON");
  EXPECT_EQ(Problem("1e999"), "is not JSON");
  EXPECT_EQ(Problem("\"\xff\""), "is not JSON");
  EXPECT_EQ(Problem("[[[[[]]]]]"), "is nested deeper than 4 levels");
  EXPECT_EQ(Problem("[[[[]]]]"), "");
  EXPECT_EQ(Problem(R"({"a": 1, "b": 2, "a": 3})"), "names 'a' twice in one object");
  EXPECT_EQ(Problem(R"({"a": 1, "b": {"a": 1}})"), "") << "in different objects";
  EXPECT_EQ(Problem("[1, 2, 3]", {.depth = 4, .values = 3}), "holds more than 3 values");
  EXPECT_EQ(Problem("[1, 2]", {.depth = 4, .values = 3}), "");
}

TEST(BoundedJson, EndsAHostileTextEarly) {
  EXPECT_THAT(Problem(std::string(50'000'000, '[')), HasSubstr("nested deeper"));
  std::string list = "[0";
  for (int i = 0; i < 200000; ++i) list += ",0";
  EXPECT_THAT(Problem(list + "]"), HasSubstr("more than 100000 values"));
}

TEST(ForeignName, IsPrintableAndShort) {
  EXPECT_EQ(ForeignName("h.0.ln_1"), "h.0.ln_1");
  EXPECT_EQ(ForeignName("a\x1b[2Jb").find('\x1b'), std::string::npos);
  EXPECT_EQ(ForeignName(std::string(500, 'x')), std::string(120, 'x') + "...");
  EXPECT_EQ(ForeignName(std::string(119, 'x') + "\u00e9\u00e9"), std::string(119, 'x') + "...")
      << "no character is cut";
}

TEST(NearName, IsTheNearestOfSimilarNames) {
  EXPECT_EQ(NearName("transformer.wte.weigth", {"transformer.wpe.weight", "transformer.wte.weight"}),
            "; did you mean 'transformer.wte.weight'?");
  EXPECT_EQ(NearName("x", {"transformer.wte.weight"}), "");
  EXPECT_EQ(NearName("x", {}), "");
}

}  // namespace
}  // namespace atl
