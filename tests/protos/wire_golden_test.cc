// The bytes of the messages that carry tensors, frozen: a client of another language, or of another version,
// must make and read the same. tests/golden/wire/*.hex, one message each.

#include <cctype>
#include <string>

#include "atoll/v1/coordinator.pb.h"
#include "common/digest.h"
#include "common/file.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "tests/paths.h"

namespace atl {
namespace {

v1::WorkerRef Someone() {
  v1::WorkerRef worker;
  worker.set_run_id("0123456789abcdef");
  worker.set_epoch(0x1122334455667788);
  worker.set_worker("w0");
  worker.set_incarnation(3);
  return worker;
}

std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

void ExpectGolden(const std::string& name, const google::protobuf::Message& message) {
  const auto file = ReadFile(std::string(ATOLL_SOURCE_DIR) + "/tests/golden/wire/" + name + ".hex");
  ASSERT_TRUE(file.ok()) << file.status() << "; the bytes now: " << ToHex(Bytes(message));
  std::string frozen;
  for (const char c : *file) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) frozen += c;
  }
  EXPECT_EQ(ToHex(Bytes(message)), frozen) << name;
}

TEST(WireGolden, PushHeader) {
  v1::PushChunk chunk;
  v1::PushHeader* header = chunk.mutable_header();
  *header->mutable_worker() = Someone();
  header->set_fragment(1);
  header->set_base_version(300);
  header->set_sequence(2);
  header->set_codec(v1::CODEC_INT8);
  header->set_payload_bytes(1 << 20);
  header->set_payload_crc32c(0xE3069283);
  header->set_tokens(38400);
  header->set_steps(50);
  header->set_samples_consumed(600);
  header->set_mean_loss(2.5);
  ExpectGolden("push_header", chunk);
}

TEST(WireGolden, PushData) {
  v1::PushChunk chunk;
  chunk.set_offset(1 << 20);
  chunk.set_data("123456789");
  chunk.set_crc32c(0xE3069283);
  ExpectGolden("push_data", chunk);
}

TEST(WireGolden, PullHeader) {
  v1::PullChunk chunk;
  v1::PullHeader* header = chunk.mutable_header();
  header->set_outcome(v1::PullHeader::PARAMETERS);
  header->set_epoch(0x1122334455667788);
  header->set_version(12);
  header->set_codec(v1::CODEC_FP32);
  header->set_elements(4096);
  header->set_payload_bytes(16384);
  header->mutable_published()->set_low(1);
  header->mutable_published()->set_high(2);
  header->mutable_plan()->set_inner_steps(50);
  header->mutable_plan()->set_active_workers(4);
  header->mutable_plan()->set_committed_tokens(1'000'000);
  header->mutable_plan()->set_total_tokens(3'072'000);
  header->mutable_plan()->set_evaluate(true);
  header->mutable_plan()->set_deadline_s(600);
  header->set_state(v1::RUN_STATE_TRAINING);
  ExpectGolden("pull_header", chunk);
}

TEST(WireGolden, SeedHeader) {
  v1::SeedChunk chunk;
  *chunk.mutable_header()->mutable_worker() = Someone();
  v1::TensorSpec* tensor = chunk.mutable_header()->mutable_manifest()->add_tensors();
  tensor->set_name("transformer.wte.weight");
  tensor->add_shape(256);
  tensor->add_shape(128);
  tensor->set_embedding(true);
  ExpectGolden("seed_header", chunk);
}

TEST(WireGolden, SeedOfAveragedTensors) {
  v1::SeedChunk chunk;
  *chunk.mutable_header()->mutable_worker() = Someone();
  v1::TensorSpec* tensor = chunk.mutable_header()->mutable_manifest()->add_tensors();
  tensor->set_name("bn.running_mean");
  tensor->add_shape(64);
  tensor->set_averaged(true);
  ExpectGolden("seed_averaged", chunk);
}

TEST(WireGolden, Join) {
  v1::JoinRequest join;
  join.mutable_protocol()->set_major(1);
  join.set_worker("w0");
  join.set_secret("0123456789abcdef");
  join.set_role(v1::ROLE_TRAINER);
  join.set_manifest_hash("ab");
  join.mutable_dataset()->set_tokenizer("bytes");
  join.mutable_dataset()->set_vocabulary(256);
  ExpectGolden("join", join);
}

}  // namespace
}  // namespace atl
