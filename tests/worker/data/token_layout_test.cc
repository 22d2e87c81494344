#include "worker/data/token_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/adopt.h"
#include "worker/data/dataset.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

template <typename Number>
std::string Raw(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

struct MegatronParts {
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths = {3, 0, 2};
  std::vector<int64_t> offsets = {0, 6, 6};
  std::vector<int64_t> documents = {0, 1, 3};

  std::string Index() const {
    return absl::StrCat(std::string(kMegatronMagic), Raw(std::vector{version}),
                        std::string(1, static_cast<char>(type)),
                        Raw(std::vector<uint64_t>{lengths.size(), documents.size()}), Raw(lengths),
                        Raw(offsets), Raw(documents));
  }
};

std::string MegatronFault(const MegatronParts& parts, uint64_t bin_bytes = 10, size_t missing = 0) {
  const std::string index = parts.Index();
  return std::string(MegatronLayout(std::as_bytes(std::span(index)).first(index.size() - missing), bin_bytes)
                         .status()
                         .message());
}

std::string DatatroveFault(const std::optional<std::string>& metadata, std::optional<uint64_t> end,
                           uint64_t bytes) {
  return std::string(DatatroveLayout(metadata, end, bytes).status().message());
}

TEST(MegatronLayoutTest, ReadsBothWidths) {
  const std::string index = MegatronParts().Index();
  const auto narrow = MegatronLayout(std::as_bytes(std::span(index)), 10);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->count, 5u);
  EXPECT_EQ(narrow->offset, 0u);
  EXPECT_EQ(narrow->width, TokenWidth::kTwoBytes);
  const std::string wide =
      MegatronParts{.type = 4, .offsets = {0, 12, 12}}.Index() + "\1\1\1";  // modes of images
  EXPECT_EQ(MegatronLayout(std::as_bytes(std::span(wide)), 20)->width, TokenWidth::kFourBytes);
}

TEST(MegatronLayoutTest, SaysWhatIsWrong) {
  EXPECT_THAT(MegatronFault({.version = 2}), HasSubstr("version 2"));
  EXPECT_THAT(MegatronFault({.type = 5}), AllOf(HasSubstr("int64"), HasSubstr("uint16 and int32")));
  EXPECT_THAT(MegatronFault({.type = 99}), HasSubstr("unknown (99)"));
  EXPECT_THAT(MegatronFault({.offsets = {0, 6, 8}}), HasSubstr("sequence 2 (of 2 tokens) at byte 8"));
  EXPECT_THAT(MegatronFault({.lengths = {3, -1, 2}}), HasSubstr("sequence 1 (of -1 tokens)"));
  EXPECT_THAT(MegatronFault({}, 8), AllOf(HasSubstr("lists 5 tokens (10 bytes)"), HasSubstr("truncated")));
  EXPECT_THAT(MegatronFault({}, 12), HasSubstr("too long"));
  EXPECT_THAT(MegatronFault({}, 10, 1), HasSubstr("its .idx file is truncated"));
  const size_t all = MegatronParts().Index().size();
  for (size_t missing = 1; missing <= all - kMegatronMagic.size(); ++missing) {
    EXPECT_NE(MegatronFault({}, 10, missing), "") << missing;
  }
  std::string huge = MegatronParts().Index();
  huge.replace(18, 8, 8, '\xff');
  EXPECT_FALSE(MegatronLayout(std::as_bytes(std::span(huge)), 10).ok());
}

TEST(DatatroveLayoutTest, ReadsWithEitherFileBesideIt) {
  const auto metadata = DatatroveLayout("gpt2|2\n1000\n1.00 kT", std::nullopt, 2000);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->count, 1000u);
  EXPECT_EQ(metadata->width, TokenWidth::kTwoBytes);
  EXPECT_EQ(DatatroveLayout("Unknown Tokenizer|4|4\n10\n10 T", 10, 40)->width, TokenWidth::kFourBytes);
  EXPECT_EQ(DatatroveLayout(std::nullopt, 10, 40)->width, TokenWidth::kFourBytes);
  EXPECT_EQ(DatatroveLayout(std::nullopt, 10, 20)->width, TokenWidth::kTwoBytes);
  EXPECT_EQ(DatatroveLayout("a|b|2\n10", 10, 20)->count, 10u);
}

TEST(DatatroveLayoutTest, SaysWhatIsWrong) {
  EXPECT_THAT(DatatroveFault("gpt2|2\n1000\n", std::nullopt, 1998),
              HasSubstr("says 1000 tokens: it is truncated"));
  EXPECT_THAT(DatatroveFault("gpt2|2\n10\n", 9, 20), HasSubstr("says 10 tokens, and its .index file 9"));
  EXPECT_THAT(DatatroveFault("gpt2|8\n10\n", 10, 80), HasSubstr("8 bytes a token"));
  EXPECT_THAT(DatatroveFault(std::nullopt, 10, 30), HasSubstr("its .index file says 10 tokens"));
  for (const char* text : {"", "gpt2", "gpt2|2", "gpt2\n10\n", "gpt2|x\n10", "gpt2|2\nmany\n"}) {
    EXPECT_THAT(DatatroveFault(text, 10, 20), HasSubstr("is not 'TOKENIZER|SIZE'")) << text;
  }
}

/// Folders of other programs, adopted and read in place.
TEST(TokenLayoutTest, AdoptsEachFormatByContent) {
  const std::string folder = TemporaryFolder();
  WriteBytes(JoinPath(folder, "text_document.bin"), Raw(std::vector<uint16_t>{1, 2, 3, 4, 5}));
  WriteBytes(JoinPath(folder, "text_document.idx"), MegatronParts().Index());
  WriteBytes(JoinPath(folder, "00000_00000_shuffled.ds"), Raw(std::vector<uint32_t>{70000, 7, 8}));
  WriteBytes(JoinPath(folder, "00000_00000_shuffled.ds.index"), Raw(std::vector<uint64_t>{2, 3}));
  WriteBytes(JoinPath(folder, "zz.bin"), TokenBytes({9, 10, 11, 12}));
  WriteBytes(JoinPath(folder, "zz.idx"), "an index of another kind");
  const auto adopted =
      Adopt({.folder = folder, .tokenizer = "llama3", .vocabulary = 128256, .validation_fraction = 0.1},
            [](uint64_t, uint64_t) {});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  const auto dataset = Dataset::Open(folder, {128256, 1, "llama3"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->VerifyContents().ok());
  std::vector<TokenId> train(dataset->train_tokens());
  ASSERT_TRUE(dataset->ReadTrain(0, train).ok());
  EXPECT_THAT(train, ElementsAre(70000, 7, 8, 1, 2, 3, 4, 5, 9, 10));
  EXPECT_THAT(dataset->validation().Tokens(), ElementsAre(11, 12));
  EXPECT_EQ(dataset->train_files()[0].format(), "datatrove");
  EXPECT_EQ(dataset->train_files()[1].format(), "Megatron");
  EXPECT_EQ(dataset->train_files()[2].format(), "llm.c");
  WriteBytes(JoinPath(folder, "text_document.bin"), Raw(std::vector<uint16_t>{1, 2, 3, 4}));
  EXPECT_THAT(std::string(Dataset::Open(folder, {128256, 1, "llama3"}).status().message()),
              AllOf(HasSubstr("text_document.bin: its .idx file lists 5 tokens"), HasSubstr("truncated")));
}

}  // namespace
}  // namespace atl
