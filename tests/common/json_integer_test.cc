#include "common/json_integer.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "gtest/gtest.h"

namespace atl {
namespace {

using nlohmann::json;

TEST(JsonIntegerTest, TakesTheWholeRange) {
  EXPECT_EQ(JsonInteger<uint32_t>(json::parse("4294967295")), 4294967295U);
  EXPECT_EQ(JsonInteger<uint64_t>(json::parse("18446744073709551615")), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(JsonInteger<int64_t>(json::parse("-9223372036854775808")), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(JsonInteger<int>(json(-3)), -3);
}

TEST(JsonIntegerTest, RejectsWhatIsNoIntegerOfTheType) {
  for (const char* const text : {"4294967296", "-1", "1e98", "1.5", "1.0", "-1e98", "true", "null", "\"7\"",
                                 "[7]", "18446744073709551616"}) {
    EXPECT_THROW(JsonInteger<uint32_t>(json::parse(text)), std::range_error) << text;
  }
  EXPECT_THROW(JsonInteger<int64_t>(json::parse("9223372036854775808")), std::range_error);
}

TEST(JsonIntegerTest, NamesTheValueAndNoMoreOfIt) {
  try {
    JsonInteger<uint32_t>(json(std::string(1000, 'x') + "\xff"));
    FAIL();
  } catch (const std::range_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "\"" + std::string(39, 'x') + " is not an integer of the range that is expected here");
  }
}

TEST(JsonIntegerTest, AMemberThatIsAbsentHasItsDefault) {
  const json object = {{"there", 5}};
  EXPECT_EQ(JsonInteger<uint32_t>(object, "there", 9), 5U);
  EXPECT_EQ(JsonInteger<uint32_t>(object, "absent", 9), 9U);
  EXPECT_THROW(JsonInteger<uint32_t>(json{{"null", nullptr}}, "null", 9), std::range_error);
}

}  // namespace
}  // namespace atl
