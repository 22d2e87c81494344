#include "client/ipc/messages.h"

#include "client/ipc/encoding.h"
#include "gtest/gtest.h"

namespace atl::ipc {
namespace {

/// Every message that is cut short or has a byte more is refused, and nothing beyond its end is read.
template <typename Decode>
void ExpectWhole(const std::string& bytes, Decode decode) {
  EXPECT_TRUE(decode(bytes).has_value());
  EXPECT_FALSE(decode(bytes + '\0').has_value());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut(bytes, 0, length);
    EXPECT_FALSE(decode(std::string_view(cut.data(), cut.size())).has_value()) << length;
  }
}

TEST(MessagesTest, AHelloComesBack) {
  const Hello hello{
      .snapshot = 1,
      .caller_pid = 42,
      .options = {{"name", "w0"}, {"role", ""}},
      .tensors = {{.name = "a", .shape = {2, 3}, .flags = 1}, {.name = "b", .shape = {}, .flags = 0}}};
  const std::string bytes = Encode(hello);
  ExpectWhole(bytes, DecodeHello);
  const auto back = DecodeHello(bytes);
  EXPECT_EQ(VersionOfHello(bytes), kVersion);
  EXPECT_EQ(back->snapshot, 1);
  EXPECT_EQ(back->caller_pid, 42);
  ASSERT_EQ(back->options.size(), 2U);
  EXPECT_EQ(back->options[0].value, "w0");
  ASSERT_EQ(back->tensors.size(), 2U);
  EXPECT_EQ(back->tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(back->tensors[0].flags, 1U);
  EXPECT_TRUE(back->tensors[1].shape.empty());
}

TEST(MessagesTest, AnEventComesBack) {
  const Event event{.sequence = 7,
                    .kind = ATL_EVENT_WRITE,
                    .learning_rate = 0.5,
                    .version = 3,
                    .local_step = 4,
                    .partition = 1,
                    .partitions = 2,
                    .samples = 5,
                    .state_bytes = 6,
                    .max_batches = 8,
                    .exit_code = -1,
                    .end_code = 9,
                    .end_reason = 10,
                    .text = "why",
                    .pieces = {{.tensor = 1, .offset = 256, .elements = 6}}};
  const std::string bytes = Encode(event);
  ExpectWhole(bytes, DecodeEvent);
  const auto back = DecodeEvent(bytes);
  EXPECT_EQ(back->sequence, 7U);
  EXPECT_EQ(back->kind, uint32_t{ATL_EVENT_WRITE});
  EXPECT_EQ(back->learning_rate, 0.5);
  EXPECT_EQ(back->exit_code, -1);
  EXPECT_EQ(back->text, "why");
  ASSERT_EQ(back->pieces.size(), 1U);
  EXPECT_EQ(back->pieces[0].offset, 256U);
}

TEST(MessagesTest, AnAnswerARefusalAndASnapshotComeBack) {
  const std::string answer = Encode(
      Answer{.sequence = 3, .outcome = ATL_FAILED, .message = "no", .tokens = 32, .state_kind = "sgd"});
  ExpectWhole(answer, DecodeAnswer);
  EXPECT_EQ(DecodeAnswer(answer)->tokens, 32U);
  EXPECT_EQ(DecodeAnswer(answer)->state_kind, "sgd");
  const std::string refused = Encode(Refused{.code = ATL_NOT_FOUND, .message = "gone"});
  ExpectWhole(refused, DecodeRefused);
  EXPECT_EQ(DecodeRefused(refused)->code, int32_t{ATL_NOT_FOUND});
  Snapshot snapshot{
      .version = 4, .run_json = "{}", .tensors = {{.name = "a", .shape = {2}}}, .pieces = {{.elements = 2}}};
  ExpectWhole(Encode(snapshot), DecodeSnapshot);
  snapshot.pieces.clear();
  EXPECT_FALSE(DecodeSnapshot(Encode(snapshot)).has_value());
}

TEST(MessagesTest, CountsBeyondTheBytesAndBoundsAreRefused) {
  Encoder out;
  out.Number(kVersion);
  out.Number(uint8_t{0});
  out.Number(int64_t{1});
  out.Number(uint32_t{0});
  out.Number(uint32_t{0xffffffff});  // tensors
  EXPECT_FALSE(DecodeHello(out.Take()).has_value());
  const Hello long_name{.tensors = {{.name = std::string(kMaxName + 1, 'x'), .shape = {1}}}};
  EXPECT_FALSE(DecodeHello(Encode(long_name)).has_value());
  const Hello deep{.tensors = {{.name = "x", .shape = std::vector<int64_t>(kMaxRank + 1, 1)}}};
  EXPECT_FALSE(DecodeHello(Encode(deep)).has_value());
}

}  // namespace
}  // namespace atl::ipc
