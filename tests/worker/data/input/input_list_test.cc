#include "worker/data/input/input_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::WriteBytes;

class InputListTest : public ::testing::Test {
 protected:
  InputListTest() {
    EXPECT_TRUE(CreateDirs(In("in/b")).ok());
    EXPECT_TRUE(CreateDirs(In("in/.git")).ok());
    EXPECT_TRUE(CreateDirs(In("empty")).ok());
    for (const char* name :
         {"in/c", "in/a", "in/b/z", "in/b/.hidden", "in/.git/x", "one.txt", "two.txt", "[odd]*.md"}) {
      WriteBytes(In(name), "text");
    }
  }
  std::string In(const std::string& name) const { return JoinPath(folder_, name); }
  std::vector<std::string> Paths(const std::vector<std::string>& names) const {
    const auto files = ListInputs(names);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    if (!files.ok()) return paths;
    for (const InputFile& file : *files)
      paths.push_back(file.path.substr(file.path == "-" ? 0 : folder_.size() + 1));
    return paths;
  }
  std::string Fault(const std::vector<std::string>& names) const {
    return std::string(ListInputs(names).status().message());
  }

  const std::string folder_ = TemporaryFolder();
};

TEST_F(InputListTest, FoldersAndPatternsAreInOrder) {
  EXPECT_THAT(Paths({In("in")}), ElementsAre("in/a", "in/b/z", "in/c"));
  EXPECT_THAT(Paths({In("two.txt"), In("one.txt"), "-"}), ElementsAre("two.txt", "one.txt", "-"));
  EXPECT_THAT(Paths({In("*.txt")}), ElementsAre("one.txt", "two.txt"));
  EXPECT_THAT(Paths({In("i?")}), ElementsAre("in/a", "in/b/z", "in/c"));
  EXPECT_THAT(Paths({In("[odd]*.md")}), ElementsAre("[odd]*.md")) << "a file of this name is no pattern";
}

TEST_F(InputListTest, SizeAndTimeTellAChangedFile) {
  const auto before = ListInputs({In("one.txt")});
  ASSERT_TRUE(before.ok());
  EXPECT_TRUE(before->front().regular);
  EXPECT_EQ(before->front().bytes, 4u);
  std::filesystem::last_write_time(In("one.txt"),
                                   std::filesystem::last_write_time(In("one.txt")) + std::chrono::seconds(1));
  EXPECT_NE(ListInputs({In("one.txt")})->front().modified_ns, before->front().modified_ns);
  EXPECT_FALSE(ListInputs({"-"})->front().regular);
}

TEST_F(InputListTest, SaysWhatIsWrong) {
  EXPECT_THAT(Fault({In("absent")}), HasSubstr(In("absent")));
  EXPECT_THAT(Fault({In("*.zip")}), HasSubstr("no file matches " + In("*.zip")));
  EXPECT_THAT(Fault({In("empty")}), HasSubstr("no file in it"));
  EXPECT_THAT(Fault({In("in"), In("in/b/../a")}), HasSubstr("named twice"));
}

}  // namespace
}  // namespace atl
