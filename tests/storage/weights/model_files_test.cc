#include "storage/weights/model_files.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "core/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ModelFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(dir_.File(name), text).ok());
  }
  /// A file with tensors of one value.
  void WriteTensors(const std::string& file, const std::vector<std::string>& names) {
    Manifest manifest;
    for (const std::string& name : names) manifest.tensors.push_back({.name = name, .shape = {1}});
    Write(file, SafetensorsHeader(manifest, {{"from", file}}) + std::string(4 * names.size(), '\0'));
  }
  std::string Error(const std::string& path) {
    const auto files = ModelFiles::Open(path);
    EXPECT_FALSE(files.ok());
    return files.status().ToString();
  }
  static std::vector<std::string> Names(const ModelFiles& files) {
    std::vector<std::string> names;
    for (const FoundTensor& found : files.found()) names.push_back(found.entry->name);
    return names;
  }

  const TestDir dir_;
};

TEST_F(ModelFilesTest, AFileMayStandAnywhere) {
  WriteTensors("m.safetensors", {"b", "a"});
  const auto files = ModelFiles::Open(dir_.File("m.safetensors"));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Names(*files), ElementsAre("b", "a"));
  EXPECT_EQ(files->found()[1].file, dir_.File("m.safetensors"));
  EXPECT_FALSE(files->config().has_value());
}

TEST_F(ModelFilesTest, AFolderHasItsConfiguration) {
  Write("config.json", "{}");
  WriteTensors("model.safetensors", {"a"});
  const auto files = ModelFiles::Open(dir_.path());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Names(*files), ElementsAre("a"));
  EXPECT_EQ(files->config()->text, "{}");
  EXPECT_EQ(files->config()->path, dir_.File("config.json"));
}

TEST_F(ModelFilesTest, SeveralFilesAreOneModel) {
  Write("config.json", "{}");
  WriteTensors("m1.safetensors", {"c"});
  WriteTensors("m2.safetensors", {"b", "a"});
  Write("model.safetensors.index.json",
        R"({"weight_map": {"a": "m2.safetensors", "b": "m2.safetensors", "c": "m1.safetensors"}})");
  for (const std::string& path : {dir_.path(), dir_.File("model.safetensors.index.json")}) {
    auto opened = ModelFiles::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const ModelFiles files = *std::move(opened);
    EXPECT_THAT(Names(files), ElementsAre("c", "b", "a"));
    EXPECT_EQ(files.found()[2].file, dir_.File("m2.safetensors"));
    EXPECT_EQ(files.contents().metadata.at("from"), "m1.safetensors");
    EXPECT_TRUE(files.config().has_value());
  }
  WriteTensors("model.safetensors", {"whole"});
  EXPECT_THAT(Names(ModelFiles::Open(dir_.path()).value()), ElementsAre("whole"))
      << "transformers prefers it";
}

TEST_F(ModelFilesTest, TheIndexAndItsFilesMustAgree) {
  Write("config.json", "{}");
  const auto with = [&](const std::string& map) {
    Write("model.safetensors.index.json", absl::StrCat(R"({"weight_map": {)", map, "}}"));
    return Error(dir_.path());
  };
  WriteTensors("m.safetensors", {"a.weight", "b.weight"});
  EXPECT_THAT(
      with(R"("a.weight": "m.safetensors")"),
      HasSubstr("m.safetensors: tensor 'b.weight' is here, and the index does not say so; did you mean "
                "'a.weight'?"));
  EXPECT_THAT(
      with(R"("a.weight": "m.safetensors", "b.wieght": "m.safetensors", "b.weight": "m.safetensors")"),
      HasSubstr("m.safetensors: tensor 'b.wieght' is missing; the index says that it is here; did you mean "
                "'b.weight'?"));
  EXPECT_THAT(with(R"("a.weight": "m.safetensors", "z": "absent.safetensors", "b.weight": "m.safetensors")"),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("absent.safetensors: No such file or directory; "),
                    HasSubstr("index.json says that 1 of the model's tensors are there, from 'z' on")));
  EXPECT_THAT(with(R"("a.weight": "../m.safetensors")"), HasSubstr("in the folder of the index"));
}

TEST_F(ModelFilesTest, AFolderWithoutAModelIsRejectedWithWhatIsThere) {
  EXPECT_THAT(Error(dir_.path()),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("has neither model.safetensors nor "
                                                      "model.safetensors.index.json; name the folder")));
  Write("pytorch_model.bin", "");
  EXPECT_THAT(Error(dir_.path()), HasSubstr("save_pretrained(safe_serialization=True)"));
  WriteTensors("adapter.safetensors", {"a"});
  EXPECT_THAT(Error(dir_.path()), HasSubstr("; if you mean adapter.safetensors, name that file"));
  EXPECT_THAT(Error(dir_.File("absent")), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(Error(dir_.File("absent.safetensors.index.json")),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("absent.safetensors.index.json")));
}

TEST_F(ModelFilesTest, AFolderNeedsItsConfiguration) {
  WriteTensors("model.safetensors", {"a"});
  EXPECT_THAT(Error(dir_.path()), AllOf(HasSubstr("NOT_FOUND"),
                                        HasSubstr("config.json is missing: without it, nothing says how many "
                                                  "heads the model has")));
}

// The cache of the hub has a folder of links to files elsewhere.
TEST_F(ModelFilesTest, LinksToFilesAreFollowed) {
  const std::string snapshot = dir_.File("snapshot");
  ASSERT_TRUE(CreateDirs(snapshot).ok());
  ASSERT_TRUE(CreateDirs(dir_.File("blobs")).ok());
  Write("blobs/1", "{}");
  WriteTensors("blobs/2", {"a"});
  std::filesystem::create_symlink("../blobs/1", JoinPath(snapshot, "config.json"));
  std::filesystem::create_symlink("../blobs/2", JoinPath(snapshot, "model.safetensors"));
  EXPECT_TRUE(ModelFiles::Open(snapshot).ok()) << ModelFiles::Open(snapshot).status();
  ASSERT_TRUE(RemoveFile(dir_.File("blobs/2")).ok());
  EXPECT_THAT(Error(snapshot), AllOf(HasSubstr("NOT_FOUND"), HasSubstr("model.safetensors")));
}

TEST_F(ModelFilesTest, DevicesAndPipesAreNotRead) {
  std::filesystem::create_symlink("/dev/zero", dir_.File("config.json"));
  WriteTensors("model.safetensors", {"a"});
  EXPECT_THAT(Error(dir_.path()), AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("config.json")));
  std::filesystem::remove(dir_.File("model.safetensors"));
  std::filesystem::create_symlink("/dev/zero", dir_.File("model.safetensors"));
  EXPECT_THAT(Error(dir_.path()), AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("model.safetensors")));
  std::filesystem::remove(dir_.File("model.safetensors"));
  ASSERT_EQ(::mkfifo(dir_.File("model.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(Error(dir_.path()), HasSubstr("FAILED_PRECONDITION"));
}

TEST_F(ModelFilesTest, LargeConfigurationsAreNotRead) {
  Write("config.json", std::string((1 << 20) + 1, ' '));
  WriteTensors("model.safetensors", {"a"});
  EXPECT_THAT(Error(dir_.path()), AllOf(HasSubstr("config.json"), HasSubstr("larger than the limit")));
}

TEST_F(ModelFilesTest, ADamagedFileIsNamed) {
  Write("config.json", "{}");
  Write("model.safetensors", "no tensors");
  EXPECT_THAT(Error(dir_.path()), HasSubstr("model.safetensors is not a safetensors file"));
}

}  // namespace
}  // namespace atl
