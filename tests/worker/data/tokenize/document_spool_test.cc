#include "worker/data/tokenize/document_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"

namespace atl {
namespace {

using testing::TemporaryFolder;

/// Document i has i % 5 + 1 tokens, all of them i.
absl::Status AddDocuments(DocumentSpool& spool, TokenId first, TokenId end) {
  for (TokenId i = first; i < end; ++i) {
    for (TokenId k = 0; k <= i % 5; ++k) {
      if (const absl::Status status = spool.Append(std::vector<TokenId>{i}); !status.ok()) return status;
    }
    if (const absl::Status status = spool.EndDocument(i % 3 == 0); !status.ok()) return status;
  }
  return spool.Sync();
}

/// The documents in the order of the spool; each must be whole and on its side.
std::vector<TokenId> Documents(const DocumentSpool& spool) {
  std::vector<TokenId> order;
  const absl::Status status = spool.Read([&](std::span<const TokenId> tokens, bool held_out) {
    EXPECT_EQ(tokens.size(), tokens[0] % 5 + 1);
    EXPECT_TRUE(std::ranges::all_of(tokens, [&](TokenId t) { return t == tokens[0]; }));
    EXPECT_EQ(held_out, tokens[0] % 3 == 0);
    order.push_back(tokens[0]);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return order;
}

DocumentSpool Open(const SpoolOptions& options, const SpoolState& state = {}) {
  auto spool = DocumentSpool::Open(options, state);
  EXPECT_TRUE(spool.ok()) << spool.status();
  return *std::move(spool);
}

TEST(DocumentSpoolTest, KeepsTheOrder) {
  DocumentSpool spool = Open({.folder = TemporaryFolder(), .width = TokenWidth::kFourBytes});
  ASSERT_TRUE(AddDocuments(spool, 0, 100'000).ok());
  EXPECT_EQ(spool.state().documents, 100'000u);
  EXPECT_EQ(spool.state().tokens, 300'000u);
  const std::vector<TokenId> order = Documents(spool);
  EXPECT_EQ(order.size(), 100'000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(DocumentSpoolTest, ShufflesBySeedAndNumberAlone) {
  const auto order_of = [](uint64_t seed, TokenId documents) {
    DocumentSpool spool = Open({.folder = TemporaryFolder(), .shuffle_seed = seed});
    EXPECT_TRUE(AddDocuments(spool, 0, documents).ok());
    return Documents(spool);
  };
  const std::vector<TokenId> order = order_of(7, 5000);
  EXPECT_EQ(order_of(7, 5000), order);
  EXPECT_NE(order_of(8, 5000), order);
  std::vector<TokenId> sorted = order;
  std::ranges::sort(sorted);
  for (TokenId i = 0; i < 5000; ++i) ASSERT_EQ(sorted[i], i);
  // A document more leaves the others in their order.
  std::vector<TokenId> more = order_of(7, 5001);
  std::erase(more, 5000u);
  EXPECT_EQ(more, order);
  // Evenly: the mean place of the first half of the documents is in the middle.
  double mean = 0;
  for (size_t at = 0; at < order.size(); ++at) mean += order[at] < 2500 ? static_cast<double>(at) / 2500 : 0;
  EXPECT_NEAR(mean, 2500, 150);
}

TEST(DocumentSpoolTest, ContinuesAtAState) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    const std::string folder = TemporaryFolder();
    const SpoolOptions options = {.folder = JoinPath(folder, "cut"), .shuffle_seed = seed};
    const SpoolOptions whole = {.folder = JoinPath(folder, "whole"), .shuffle_seed = seed};
    ASSERT_TRUE(CreateDirs(options.folder).ok());
    ASSERT_TRUE(CreateDirs(whole.folder).ok());
    SpoolState state;
    {
      DocumentSpool spool = Open(options);
      ASSERT_TRUE(AddDocuments(spool, 0, 1000).ok());
      state = spool.state();
      ASSERT_TRUE(AddDocuments(spool, 5000, 7000).ok());  // lost
    }
    DocumentSpool spool = Open(options, state);
    ASSERT_TRUE(AddDocuments(spool, 1000, 2000).ok());
    const std::vector<TokenId> order = Documents(spool);
    ASSERT_TRUE(spool.Remove().ok());
    EXPECT_TRUE(ListDir(options.folder)->empty());
    DocumentSpool other = Open(whole);
    ASSERT_TRUE(AddDocuments(other, 0, 2000).ok());
    EXPECT_EQ(Documents(other), order);
  }
}

TEST(DocumentSpoolTest, NoticesAFileThatWasChanged) {
  const std::string folder = TemporaryFolder();
  const SpoolOptions options = {.folder = folder};
  SpoolState state;
  {
    auto spool = DocumentSpool::Open(options, {});
    ASSERT_TRUE(spool.ok() && AddDocuments(*spool, 0, 50).ok());
    state = spool->state();
  }
  for (const char* const name : {"tokens-000.tmp", "index-000.tmp"}) {
    const std::string path = JoinPath(folder, name);
    const std::string good = *ReadFile(path);
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x40);
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    const absl::Status opened = DocumentSpool::Open(options, state).status();
    EXPECT_EQ(opened.code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_THAT(std::string(opened.message()), ::testing::HasSubstr(name));
    ASSERT_TRUE(WriteFileAtomically(path, good).ok());
  }
  EXPECT_TRUE(DocumentSpool::Open(options, state).ok());
}

TEST(DocumentSpoolTest, NoticesAFileThatIsTooShort) {
  const SpoolOptions options = {.folder = TemporaryFolder()};
  SpoolState state;
  {
    DocumentSpool spool = Open(options);
    ASSERT_TRUE(AddDocuments(spool, 0, 10).ok());
    state = spool.state();
  }
  testing::WriteBytes(JoinPath(options.folder, "tokens-000.tmp"), "");
  EXPECT_THAT(std::string(DocumentSpool::Open(options, state).status().message()),
              ::testing::HasSubstr("tokens-000.tmp: 0 bytes, but"));
}

}  // namespace
}  // namespace atl
