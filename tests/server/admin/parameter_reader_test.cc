#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "server/admin/admin_control.h"
#include "tests/server/test_run.h"

// Tensors of versions and checkpoints, read while the run is served.

namespace atl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

const AdminCaller kAnn{.user = "ann", .peer = "test"};

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  return Fill([&](size_t i) {
    return 0.01F * std::sin(static_cast<float>(i + base * 31 + static_cast<size_t>(worker.worker[0])));
  });
}

/// Puts the pieces together; fails the test when they do not follow each other.
class Collector final : public ParameterSink {
 public:
  bool Begin(const ParametersView& with) override {
    view = with;
    vectors.assign(1 + with.outer_state.size(), {});
    if (on_begin) on_begin();
    return wants;
  }
  bool Take(const ParameterPiece& piece) override {
    std::vector<float>& vector = vectors.at(piece.vector);
    EXPECT_EQ(piece.fragment, FragmentId(0));
    EXPECT_EQ(piece.first_byte, vector.size() * sizeof(float));
    const size_t before = vector.size();
    vector.resize(before + piece.bytes.size() / sizeof(float));
    std::memcpy(vector.data() + before, piece.bytes.data(), piece.bytes.size());
    if (on_piece) on_piece();
    return wants;
  }

  bool wants = true;
  std::function<void()> on_begin;
  std::function<void()> on_piece;
  ParametersView view;
  std::vector<std::vector<float>> vectors;
};

class ParameterReaderTest : public testing::Test {
 protected:
  void Begin() { workers_ = run_.Begin({"a", "b"}, Fill(Start)); }
  void Round(uint64_t base) {
    for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Pull(worker).ok());
    for (const MemberRef& worker : workers_) {
      const auto pushed = run_.Push(worker, base, DeltaOf(worker, base));
      ASSERT_TRUE(pushed.ok()) << pushed.status();
    }
    ASSERT_TRUE(run_.Pull(workers_[0], base).ok());
  }
  absl::Status Read(const ReadParametersCall& call, Collector& into) {
    return run_.admin().ReadParameters(call, into);
  }
  absl::Status Read(const ReadParametersCall& call) {
    Collector nobody;
    return Read(call, nobody);
  }

  TestRun run_;
  std::vector<MemberRef> workers_;
};

TEST_F(ParameterReaderTest, TheNewestVersionIsThePublishedOne) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Read({}))) << "nobody has seeded it";
  Begin();
  Round(0);  // perhaps not stored yet
  Collector read;
  ASSERT_TRUE(Read({}, read).ok());
  EXPECT_THAT(read.view.versions, ElementsAre(Version(1)));
  EXPECT_EQ(read.view.manifest, SmallManifest());
  EXPECT_EQ(read.view.config, "config-1");
  EXPECT_EQ(read.view.epoch, workers_[0].epoch);
  EXPECT_EQ(read.view.run_id, workers_[0].run_id);
  ASSERT_EQ(read.vectors.size(), 1u);
  EXPECT_EQ(read.vectors[0], run_.Published(workers_[0], 0));
}

TEST_F(ParameterReaderTest, TheMomentumFollowsTheParameters) {
  Begin();
  Round(0);
  Collector read;
  ASSERT_TRUE(Read({.outer_state = true}, read).ok());
  EXPECT_THAT(read.view.outer_state, ElementsAre("momentum"));
  ASSERT_EQ(read.vectors.size(), 2u);
  const std::vector<float> a = DeltaOf(workers_[0], 0), b = DeltaOf(workers_[1], 0);
  std::vector<float> mean(a.size());
  for (size_t i = 0; i < mean.size(); ++i) mean[i] = (a[i] + b[i]) / 2;
  EXPECT_THAT(read.vectors[1], Pointwise(FloatNear(1e-7F), mean)) << "momentum after the first step";
}

TEST_F(ParameterReaderTest, VersionsThatAreStoredAndNoOthers) {
  Begin();
  std::vector<float> second;
  for (uint64_t base = 0; base < 3; ++base) {
    Round(base);
    run_.WaitForStored(base + 1);
    if (base == 1) second = run_.Published(workers_[0], 1);
  }
  Collector read;
  ASSERT_TRUE(Read({.version = Version(2)}, read).ok());
  EXPECT_THAT(read.view.versions, ElementsAre(Version(2)));
  EXPECT_EQ(read.vectors[0], second);
  EXPECT_THAT(Read({.version = Version(0)}).ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("stored versions: 2, 3")));
  EXPECT_THAT(Read({.version = Version(9)}).ToString(), HasSubstr("the newest version is 3"));
}

TEST_F(ParameterReaderTest, ACheckpointIsReadWhileTheRunGoesOn) {
  Begin();
  Round(0);
  run_.WaitForStored(1);
  ASSERT_TRUE(run_.admin().CreateCheckpoint(kAnn, "before-lr-change").ok());
  const std::vector<float> then = run_.Published(workers_[0], 0);
  for (uint64_t base = 1; base < 5; ++base) Round(base);
  Collector read;
  ASSERT_TRUE(Read({.checkpoint = "before-lr-change"}, read).ok());
  EXPECT_THAT(read.view.versions, ElementsAre(Version(1)));
  EXPECT_EQ(read.vectors[0], then);
  EXPECT_EQ(read.view.config, "config-1");
}

TEST_F(ParameterReaderTest, ACheckpointOfAVersionThatWasNotStoredIsReplayed) {
  Begin();
  Round(0);
  run_.WaitForStored(1);
  run_.faults().store = true;
  Round(1);
  ASSERT_TRUE(run_.admin().CreateCheckpoint(kAnn, "two").ok());
  const std::vector<float> then = run_.Published(workers_[0], 1);
  run_.faults().store = false;
  run_.WaitForStored(2);
  Collector of_run, of_checkpoint;
  ASSERT_TRUE(Read({.version = Version(2), .outer_state = true}, of_run).ok());
  const absl::Status read = Read({.checkpoint = "two", .outer_state = true}, of_checkpoint);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_THAT(of_checkpoint.view.versions, ElementsAre(Version(2)));
  EXPECT_EQ(of_checkpoint.vectors[0], then);
  EXPECT_EQ(of_checkpoint.vectors, of_run.vectors);
}

TEST_F(ParameterReaderTest, AnUnknownCheckpointIsNamedWithThoseThatThereAre) {
  Begin();
  EXPECT_THAT(Read({.checkpoint = "first"}).ToString(),
              HasSubstr("checkpoint 'first' does not exist; the run has no checkpoints"));
  for (const char* name : {"first", "second"}) ASSERT_TRUE(run_.admin().CreateCheckpoint(kAnn, name).ok());
  const std::string similar =
      "checkpoint 'fisrt' does not exist; did you mean 'first'? The run has second, first";
  EXPECT_THAT(Read({.checkpoint = "fisrt"}).ToString(), AllOf(HasSubstr("NOT_FOUND"), HasSubstr(similar)));
  EXPECT_THAT(run_.admin().RestoreCheckpoint(kAnn, "fisrt").status().ToString(), HasSubstr(similar));
  EXPECT_THAT(run_.admin().DeleteCheckpoint(kAnn, "fisrt").ToString(), HasSubstr(similar));
  EXPECT_THAT(Read({.checkpoint = "x"}).ToString(), HasSubstr("does not exist; the run has second, first"));
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(run_.admin().CreateCheckpoint(kAnn, "more" + std::to_string(i)).ok());
  }
  EXPECT_THAT(Read({.checkpoint = "x"}).ToString(), HasSubstr(" and 4 older ones"));
}

TEST_F(ParameterReaderTest, AVersionThatIsDroppedMeanwhileIsNoDamage) {
  Begin();
  Round(0);
  run_.WaitForStored(1);
  Collector read;
  read.on_piece = [&] {
    for (uint64_t base = 1; base < 4; ++base) {
      Round(base);
      run_.WaitForStored(base + 1);
    }
  };
  EXPECT_THAT(Read({.version = Version(1), .outer_state = true}, read).ToString(),
              AllOf(HasSubstr("NOT_FOUND"), HasSubstr("version 1 was dropped while it was read")));
}

TEST_F(ParameterReaderTest, AReaderThatWantsNoMoreEndsWell) {
  Begin();
  Collector read;
  read.wants = false;
  EXPECT_TRUE(Read({}, read).ok());
  EXPECT_TRUE(read.vectors[0].empty());
}

TEST_F(ParameterReaderTest, AFewReadersAtATime) {
  Begin();
  absl::Status third;
  Collector inner, outer;
  inner.on_begin = [&] { third = Read({}); };
  outer.on_begin = [&] { EXPECT_TRUE(Read({}, inner).ok()); };
  ASSERT_TRUE(Read({}, outer).ok());
  EXPECT_THAT(third.ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("2 exports are in progress")));
  EXPECT_EQ(inner.vectors, outer.vectors);
  EXPECT_TRUE(Read({}).ok()) << "their places are free again";
}

}  // namespace
}  // namespace atl
