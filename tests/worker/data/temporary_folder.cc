#include "tests/worker/data/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "common/file.h"

namespace atl::testing {

std::string TemporaryFolder() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      JoinPath(::testing::TempDir(), std::string(test->test_suite_name()) + "." + test->name());
  EXPECT_TRUE(RemoveAll(path).ok());
  EXPECT_TRUE(CreateDirs(path).ok());
  return path;
}

void WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
}

std::string TokenBytes(int32_t magic, int32_t version, int32_t count, const std::vector<TokenId>& tokens) {
  const size_t each = magic == 20240801 ? 4 : 2;
  std::string bytes(1024 + tokens.size() * each, '\0');
  const int32_t words[] = {magic, version, count};
  std::memcpy(bytes.data(), words, sizeof(words));
  for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(bytes.data() + 1024 + i * each, &tokens[i], each);
  return bytes;
}

std::string TokenBytes(const std::vector<TokenId>& tokens) {
  return TokenBytes(20240520, 1, static_cast<int32_t>(tokens.size()), tokens);
}

}  // namespace atl::testing
