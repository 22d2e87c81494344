#include "client/ipc/status_page.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace atl::ipc {
namespace {

class StatusPageTest : public ::testing::Test {
 protected:
  std::vector<uint64_t> memory_ = std::vector<uint64_t>(kStatusPageBytes / sizeof(uint64_t));
  StatusPage page_{std::as_writable_bytes(std::span(memory_))};
};

TEST_F(StatusPageTest, ShowsTheNewestText) {
  EXPECT_EQ(page_.Read(), "");
  page_.Write("first");
  page_.Write("the second, longer text");
  EXPECT_EQ(page_.Read(), "the second, longer text");
  page_.Write("");
  EXPECT_EQ(page_.Read(), "");
}

TEST_F(StatusPageTest, ATextThatDoesNotFitIsNotShown) {
  page_.Write("before");
  page_.Write(std::string(kStatusPageBytes, 'x'));
  EXPECT_EQ(page_.Read(), "before");
}

TEST_F(StatusPageTest, AWriterThatDiesWithinAWriteLeavesNothingHalf) {
  page_.Write("whole");
  memory_[0] |= 1;
  EXPECT_EQ(page_.Read(), std::nullopt);
}

TEST_F(StatusPageTest, AReaderNeverSeesTwoTextsMixed) {
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) page_.Write(std::string(100 + i % 400, static_cast<char>('a' + i % 26)));
    done = true;
  });
  while (!done) {
    const auto text = page_.Read();
    if (!text.has_value() || text->empty()) continue;
    EXPECT_EQ(text->find_first_not_of(text->front()), std::string::npos) << *text;
  }
  writer.join();
}

}  // namespace
}  // namespace atl::ipc
