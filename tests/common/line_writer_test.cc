#include "common/line_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;

// A pipe of one page.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_GE(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 4096);
  }
  ~Pipe() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int in() const { return ends_[1]; }
  void Fill() {
    const std::string page(4096, '.');
    EXPECT_EQ(::write(ends_[1], page.data(), page.size()), 4096);
  }
  std::string Read(size_t bytes) {
    std::string text(bytes, '\0');
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::read(ends_[0], text.data() + done, bytes - done);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    text.resize(done);
    return text;
  }
  std::string ReadToTheEnd() {
    ::close(ends_[1]);
    ends_[1] = -1;
    return Read(1 << 24);
  }

 private:
  int ends_[2] = {-1, -1};
};

LineWriter::Options To(int fd) {
  LineWriter::Options options;
  options.fd = ::dup(fd);  // a writer that is left behind keeps its descriptor
  options.owns_fd = true;
  options.dropped_text = [](uint64_t lines, double) { return absl::StrCat("dropped ", lines, "\n"); };
  return options;
}

TEST(LineWriterTest, ALineIsWrittenBeforeTheCallReturns) {
  Pipe pipe;
  LineWriter writer(To(pipe.in()));
  writer.AwaitWritten(writer.Add("one\n", false));
  EXPECT_EQ(pipe.Read(4), "one\n");
  writer.AwaitWritten(writer.Add("two\n", false));
  EXPECT_EQ(pipe.Read(4), "two\n");
}

TEST(LineWriterTest, LinesWaitInOrderForAReaderThatComesBack) {
  Pipe pipe;
  pipe.Fill();
  std::vector<std::string> expected;
  LineWriter writer(To(pipe.in()));
  for (int i = 0; i < 1000; ++i) {
    expected.push_back(absl::StrCat("line ", i));
    writer.AwaitWritten(writer.Add(expected.back() + "\n", false));
  }
  pipe.Read(4096);
  size_t bytes = 0;
  for (const std::string& line : expected) bytes += line.size() + 1;
  const std::string text = pipe.Read(bytes);
  EXPECT_TRUE(writer.Flush());
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines, expected);
}

TEST(LineWriterTest, CallsWaitForAReaderOnceAndNotAgain) {
  Pipe pipe;
  pipe.Fill();
  auto options = To(pipe.in());
  options.patience = 50ms;
  options.flush_limit = 10ms;
  const auto began = std::chrono::steady_clock::now();
  {
    LineWriter writer(options);
    for (int i = 0; i < 5000; ++i) writer.AwaitWritten(writer.Add("x\n", false));
  }
  // 5,000 calls with patience would take 250 s.
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s);
  pipe.ReadToTheEnd();  // ends the thread that was left behind
}

TEST(LineWriterTest, AFullQueueDropsTheNewestAndSaysSo) {
  Pipe pipe;
  pipe.Fill();
  auto options = To(pipe.in());
  options.patience = 1ms;
  options.max_bytes = 24;
  options.reserve_bytes = 10;
  const uint64_t before = DroppedLogLines();
  LineWriter writer(options);
  writer.AwaitWritten(writer.Add("first\n", false));  // perhaps waits in the pipe already
  EXPECT_EQ(writer.Add("second 9\n", false), 2u);
  EXPECT_EQ(writer.Add("third  9\n", false), 3u);
  EXPECT_EQ(writer.Add("too much\n", false), 0u);
  EXPECT_EQ(writer.Add("too much\n", false), 0u);
  EXPECT_EQ(writer.Add("an error\n", true), 4u);
  EXPECT_EQ(DroppedLogLines() - before, 2u);
  pipe.Read(4096);
  EXPECT_TRUE(writer.Flush());
  const std::vector<std::string> lines =
      absl::StrSplit(pipe.Read(6 + 9 + 9 + 9 + 10), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, ElementsAre("first", "second 9", "third  9", "an error", "dropped 2"));
  writer.AwaitWritten(writer.Add("later\n", false));
  EXPECT_EQ(pipe.Read(6), "later\n");
}

TEST(LineWriterTest, ADescriptorThatTakesNothingHoldsNobody) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const auto options = To(full);
  ::close(full);
  const uint64_t before = DroppedLogLines();
  LineWriter writer(options);
  for (int i = 0; i < 10; ++i) writer.AwaitWritten(writer.Add("x\n", false));
  EXPECT_TRUE(writer.Flush());
  EXPECT_EQ(DroppedLogLines() - before, 10u);
}

TEST(LoggerTest, AFifoThatNobodyReadsHoldsNeitherCallsNorTheEnd) {
  TestDir dir;
  const std::string fifo = dir.File("log");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const uint64_t before = DroppedLogLines();
  {
    auto logger = Logger::Create({.format = LogFormat::kJson, .stream = nullptr, .file = fifo});
    ASSERT_TRUE(logger.ok()) << logger.status();
    const std::string long_text(1000, 'y');
    for (int i = 0; i < 3000; ++i) logger->Info("a line", {{"i", i}, {"text", long_text}});
    EXPECT_GT(DroppedLogLines(), before);
    // The reader comes back: whole lines in order, then how many are missing.
    ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
    std::string text;
    while (text.find("lines were dropped") == std::string::npos || text.back() != '\n') {
      char buffer[65536];
      const ssize_t got = ::read(reader, buffer, sizeof(buffer));
      ASSERT_GT(got, 0);
      text.append(buffer, static_cast<size_t>(got));
    }
    int next = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const auto json = nlohmann::json::parse(std::string(line));
      if (json["message"] == "a line") {
        EXPECT_EQ(json["i"], next++);
      } else {
        EXPECT_EQ(json["level"], "warning");
        EXPECT_EQ(json["component"], "log");
        EXPECT_EQ(json["lines"], 3000 - next);
      }
    }
    EXPECT_LT(next, 3000);
    // And stops again. The end of the logger does not wait for it.
    for (int i = 0; i < 300; ++i) logger->Error("again", {{"text", long_text}});
  }
  ::close(reader);
}

}  // namespace
}  // namespace atl
