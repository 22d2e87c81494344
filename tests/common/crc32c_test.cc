#include "common/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(Crc32cTest, CheckValueOfTheCatalogue) { EXPECT_EQ(Crc32c("123456789"), 0xE3069283u); }

// RFC 3720, B.4.
TEST(Crc32cTest, IscsiExamples) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) up.push_back(static_cast<char>(i));
  for (int i = 31; i >= 0; --i) down.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(down), 0x113FDB5Cu);
}

TEST(Crc32cTest, EmptyIsZeroAndKeepsTheSeed) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("", 0x12345678u), 0x12345678u);
}

TEST(Crc32cTest, ContinuesFromASeed) {
  std::string text(100'003, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  const uint32_t whole = Crc32c(text);
  for (const size_t cut : {size_t{1}, size_t{7}, size_t{64}, size_t{4096}, text.size() - 1}) {
    const std::string_view view = text;
    EXPECT_EQ(Crc32c(view.substr(cut), Crc32c(view.substr(0, cut))), whole) << cut;
  }
}

}  // namespace
}  // namespace atl
