#include "worker/data/input/json_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Text(const std::string& line) {
  JsonLineReader reader("text");
  const std::string padded = line + std::string(kJsonPadding, '}');
  const auto text = reader.Text(std::string_view(padded).substr(0, line.size()));
  if (!text.ok()) return text.status();
  return std::string(*text);
}

std::string Fault(const std::string& line) { return std::string(Text(line).status().message()); }

TEST(JsonLineTest, TakesTheStringOfTheField) {
  EXPECT_EQ(*Text(R"({"a": [1, {"text": "inner"}], "text": "a\u00e9\n\ud83d\ude00\"", "z": null})"),
            "a\u00e9\n\U0001F600\"");
  EXPECT_EQ(*Text(R"({"text": "first", "text": "last"})"), "last") << "as in Python";
  EXPECT_EQ(*Text("\t{\"text\":\"\"} \r"), "");
  EXPECT_EQ(*Text(R"({"t\u0065xt": "escaped name"})"), "escaped name");
}

TEST(JsonLineTest, SaysWhyALineIsBad) {
  EXPECT_THAT(Fault(R"({"text": "cut)"), HasSubstr("not JSON: "));
  EXPECT_THAT(Fault(R"({"text": "a"} {"text": "b"})"), HasSubstr("not JSON: "));
  EXPECT_THAT(Fault(R"({"text": "a")"), HasSubstr("not JSON: "));
  EXPECT_THAT(Fault(R"({"text": "a", })"), HasSubstr("not JSON: "));
  EXPECT_THAT(Fault(R"({'text': 'a'})"), HasSubstr("not JSON: "));
  EXPECT_THAT(Fault(R"({"text": "\ud800"})"), HasSubstr("not JSON: ")) << "half of a surrogate pair";
  EXPECT_EQ(Fault("{\"text\": \"\xc3\"}"), "invalid UTF-8");
  EXPECT_EQ(Fault(R"("text")"), "not a JSON object but a string");
  EXPECT_EQ(Fault(R"({"txt": "a"})"), "no field 'text'");
  EXPECT_EQ(Fault(R"({"text": null})"), "the field 'text' is null, not a string");
  EXPECT_EQ(Fault(R"({"text": ["a"]})"), "the field 'text' is an array, not a string");
  EXPECT_THAT(Fault(std::string(100'000, '[')), HasSubstr("not JSON: ")) << "no stack overflow";
}

TEST(JsonLineTest, NamesTheFieldsOfALine) {
  EXPECT_THAT(JsonLineReader::StringFields(R"({"id": 1, "a": "x", "b": {"c": "y"}, "d": "z"})"),
              ElementsAre("a", "d"));
  EXPECT_THAT(JsonLineReader::StringFields("[\"a\"]"), ElementsAre());
}

}  // namespace
}  // namespace atl
