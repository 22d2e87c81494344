#include "client/parameters/parameters_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/crc32c.h"
#include "common/status.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The messages of two small fragments, each with its momentum.
class AssemblerTest : public testing::Test {
 protected:
  AssemblerTest() {
    v1::ParametersHeader& header = *messages_.emplace_back().mutable_header();
    *header.mutable_config() = *ParseRunConfig(kSampleYaml, "test");
    for (const char* name : {"a", "b"}) {
      v1::TensorSpec& tensor = *header.mutable_manifest()->add_tensors();
      tensor.set_name(name);
      tensor.add_shape(200);
    }
    header.set_run_id("0123456789abcdef");
    header.set_epoch(7);
    header.add_versions(3);
    header.add_versions(3);
    header.add_outer_state("momentum");
    for (uint32_t fragment = 0; fragment < 2; ++fragment) {
      for (uint32_t vector = 0; vector < 2; ++vector) {
        AddChunk(fragment, vector, 0, 100);
        AddChunk(fragment, vector, 400, 156);  // 256 values with the gap
      }
    }
  }

  void AddChunk(uint32_t fragment, uint32_t vector, uint64_t offset, size_t values) {
    v1::ParametersChunk& message = messages_.emplace_back();
    message.set_fragment(fragment);
    message.set_vector(vector);
    const std::vector<float> data(values, static_cast<float>(10 * fragment + vector) + 0.5F);
    message.mutable_chunk()->set_offset(offset);
    message.mutable_chunk()->set_data(data.data(), values * sizeof(float));
    message.mutable_chunk()->set_crc32c(Crc32c(message.chunk().data()));
  }

  absl::StatusOr<StoredParameters> Assemble() {
    ParametersAssembler assembler(query_, [](const RunOptions&) { return absl::OkStatus(); });
    for (const v1::ParametersChunk& message : messages_) ATOLL_RETURN_IF_ERROR(assembler.Add(message));
    return std::move(assembler).Finish();
  }

  ParametersQuery query_{.version = 3, .outer_state = true};
  std::vector<v1::ParametersChunk> messages_;
};

TEST_F(AssemblerTest, AWholeAnswerIsTheTensors) {
  const auto read = Assemble();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->run_id, "0123456789abcdef");
  EXPECT_EQ(read->epoch, 7u);
  EXPECT_THAT(read->versions, ElementsAre(3, 3));
  EXPECT_THAT(read->state_names, ElementsAre("momentum"));
  EXPECT_EQ(read->options.name, "sample");
  EXPECT_EQ(read->parameters[1], std::vector<float>(256, 10.5F));
  EXPECT_EQ(read->state[0][0], std::vector<float>(256, 1.5F));
}

TEST_F(AssemblerTest, WhatIsNotWholeIsRejected) {
  const std::vector<v1::ParametersChunk> whole = messages_;
  const auto rejected = [&](const std::function<void()>& change, const std::string& words) {
    messages_ = whole;
    change();
    const auto read = Assemble();
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << words << ": " << read.status();
    EXPECT_THAT(read.status().message(), HasSubstr(words));
  };
  rejected([&] { messages_.clear(); }, "it is empty");
  rejected([&] { messages_.pop_back(); }, "it ends at byte 400 of vector 1 of fragment 1");
  rejected([&] { messages_.resize(1); }, "it ends at byte 0");
  rejected([&] { messages_.push_back(whole.back()); }, "it goes on after its end");
  rejected([&] { std::swap(messages_[1], messages_[2]); }, "at byte 400 of vector 0");
  rejected([&] { messages_[3].set_vector(0); }, "vector 0 of fragment 0");
  rejected([&] { messages_[5].set_fragment(0); }, "of fragment 0");
  rejected([&] { messages_[1].mutable_chunk()->mutable_data()->clear(); }, "with 0 bytes");
  rejected([&] { messages_[2].mutable_chunk()->mutable_data()->append(4, 'x'); }, "with 628 bytes");
  rejected([&] { (*messages_[2].mutable_chunk()->mutable_data())[9] ^= 1; }, "damaged in transit");
  rejected([&] { messages_[0].mutable_header()->set_versions(1, 4); }, "version 4 instead of 3");
  rejected(
      [&] {
        for (int i = 0; i < 16; ++i) messages_[0].mutable_header()->add_outer_state("m");
      },
      "too many vectors");
  query_.outer_state = false;
  rejected([] {}, "nobody asked for");
}

TEST_F(AssemblerTest, ARunIsRejectedBeforeItsTensorsAreRead) {
  ParametersAssembler assembler(
      query_, [](const RunOptions& run) { return absl::InvalidArgumentError("not " + run.name); });
  EXPECT_EQ(assembler.Add(messages_[0]).message(), "not sample");
}

TEST_F(AssemblerTest, AHeaderOfNoRunIsRejected) {
  messages_[0].mutable_header()->mutable_manifest()->mutable_tensors(0)->set_shape(0, -1);
  EXPECT_FALSE(Assemble().ok());
  messages_[0].mutable_header()->clear_config();
  EXPECT_FALSE(Assemble().ok());
  messages_.erase(messages_.begin());
  EXPECT_FALSE(Assemble().ok()) << "the first message has no header";
}

}  // namespace
}  // namespace atl
