#include "server/events/event_log.h"

#include <gtest/gtest.h>

#include "server/events/event_json.h"
#include "storage/memory_store.h"
#include "tests/common/fake_clock.h"

namespace atl {
namespace {

EventView Message(const std::string& message) {
  EventView event;
  event.kind = EventKind::kWorkerJoined;
  event.message = message;
  return event;
}

TEST(EventJson, CarriesEveryField) {
  EventView event = Message("hello \"world\" \xff");
  event.sequence = 7;
  event.unix_ns = 1234567890123456789;
  event.worker = "w";
  event.fragment = FragmentId(2);
  event.version = Version(9);
  event.round = RoundSummaryView{.fragment = FragmentId(2),
                                 .version = Version(9),
                                 .contributions = 4,
                                 .train_loss = 1.5,
                                 .tokens = 100,
                                 .committed_tokens = 1ULL << 60,
                                 .open_seconds = 2.5,
                                 .commit_seconds = 0.25,
                                 .payload_bytes = 4096,
                                 .close_reason = "all arrived",
                                 .closed_unix_ns = -5};
  event.evaluation = EvaluationView{.version = Version(9), .loss = 2.25, .tokens = 11};
  const auto read = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sequence, 7);
  EXPECT_EQ(read->unix_ns, 1234567890123456789);
  EXPECT_EQ(read->kind, EventKind::kWorkerJoined);
  EXPECT_EQ(read->message, "hello \"world\" \xef\xbf\xbd") << "what is not UTF-8 is replaced";
  EXPECT_EQ(read->worker, "w");
  EXPECT_EQ(read->fragment, FragmentId(2));
  EXPECT_EQ(read->version, Version(9));
  EXPECT_EQ(read->round->contributions, 4);
  EXPECT_EQ(read->round->committed_tokens, 1ULL << 60);
  EXPECT_EQ(read->round->close_reason, "all arrived");
  EXPECT_EQ(read->round->closed_unix_ns, -5);
  EXPECT_EQ(read->evaluation->loss, 2.25);
}

TEST(EventJson, RejectsWhatItDidNotWrite) {
  for (const char* bytes : {"", "[1]", "{}", "{\"sequence\":\"seven\"}", "{\"sequence\":7,\"round\":5}"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeEvent(bytes).status())) << bytes;
  }
  EXPECT_EQ(DecodeEvent("{\"sequence\":7,\"new\":true}")->sequence, 7)
      << "unknown keys are for later versions";
}

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() : store_(*OpenMemoryStore(NewMemoryDisk())) {
    (void)store_->Recover();
    EXPECT_TRUE(
        store_
            ->CreateRun({.run_id = "r", .name = "n", .epoch = Epoch(1), .shards = 1, .chunk_elements = 4096},
                        {.version = 1, .bytes = "c"})
            .ok());
    log_ = std::make_unique<EventLog>(store_.get(), &clock_, Logger(), &observer_, 0);
  }
  EventLog::Sink Into(std::vector<uint64_t>* sequences, size_t until = 1000) {
    return [sequences, until](const EventView& event) {
      sequences->push_back(event.sequence);
      return sequences->size() < until;
    };
  }

  FakeClock clock_;
  CoordinatorObserver observer_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<EventLog> log_;
};

TEST_F(EventLogTest, TellsThePastThenThePresent) {
  for (int i = 0; i < 600; ++i) log_->Append(Message("past"));
  std::vector<uint64_t> all;
  std::vector<uint64_t> tail;
  log_->Subscribe(0, Into(&all));
  log_->Subscribe(598, Into(&tail));
  for (int i = 0; i < 5; ++i) log_->Append(Message("present"));
  log_->Drain();
  ASSERT_EQ(all.size(), 605);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i + 1);
  EXPECT_EQ(tail, (std::vector<uint64_t>{599, 600, 601, 602, 603, 604, 605}));
}

TEST_F(EventLogTest, ASinkEndsItsSubscription) {
  std::vector<uint64_t> seen;
  log_->Subscribe(0, Into(&seen, 2));
  for (int i = 0; i < 5; ++i) log_->Append(Message("more"));
  log_->Drain();
  EXPECT_EQ(seen.size(), 2);
}

TEST_F(EventLogTest, AfterUnsubscribeNothingComes) {
  std::vector<uint64_t> seen;
  const uint64_t id = log_->Subscribe(0, Into(&seen));
  log_->Append(Message("one"));
  log_->Drain();
  log_->Unsubscribe(id);
  log_->Append(Message("two"));
  log_->Drain();
  EXPECT_EQ(seen.size(), 1);
}

TEST_F(EventLogTest, ASinkMayUnsubscribeItself) {
  uint64_t id = 0;
  int calls = 0;
  id = log_->Subscribe(0, [&](const EventView&) {
    ++calls;
    log_->Unsubscribe(id);
    return true;
  });
  for (int i = 0; i < 3; ++i) log_->Append(Message("more"));
  log_->Drain();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLogTest, NumbersGoOnAfterARestart) {
  for (int i = 0; i < 3; ++i) log_->Append(Message("before"));
  log_->Stop();
  log_ = std::make_unique<EventLog>(store_.get(), &clock_, Logger(), &observer_, log_->last_sequence());
  log_->Append(Message("after"));
  EXPECT_EQ(log_->last_sequence(), 4);
  log_->Drain();
  EXPECT_EQ(store_->ReadEvents(0, 100)->size(), 4);
}

}  // namespace
}  // namespace atl
