#include <optional>
#include <random>
#include <string>

#include "core/round.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

void ExpectEqual(const RoundView& a, const RoundView& b) {
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.started_at, b.started_at);
  EXPECT_EQ(a.gathering, b.gathering);
  EXPECT_EQ(a.gather_until, b.gather_until);
  EXPECT_EQ(a.gathered, b.gathered);
  EXPECT_EQ(a.expected, b.expected);
  ASSERT_EQ(a.arrived.size(), b.arrived.size());
  for (size_t i = 0; i < a.arrived.size(); ++i) {
    EXPECT_EQ(a.arrived[i].worker, b.arrived[i].worker);
    EXPECT_EQ(a.arrived[i].at, b.arrived[i].at);
  }
  EXPECT_EQ(a.late, b.late);
  EXPECT_EQ(a.overdue, b.overdue);
  EXPECT_EQ(a.live_trainers, b.live_trainers);
  EXPECT_EQ(a.first_join_due, b.first_join_due);
  EXPECT_EQ(a.next_round, b.next_round);
  EXPECT_EQ(a.expected_change_at, b.expected_change_at);
}

/// A round whose view is looked at after every step, and its twin, of which only copies are ever looked at:
/// their views are made from nothing.
class RoundViewTest : public testing::TestWithParam<RoundMode> {
 protected:
  static constexpr uint64_t kBase = 6;
  void Begin(uint32_t seed) {
    random_.seed(seed);
    now_ = MonoTime(Seconds(1000));
    members_.emplace(MembershipOptions{.lease = Seconds(15)});
    seen_.reset();
    twin_.reset();
    for (int i = 0; i < 4; ++i) Join(Below(8));
    RoundOptions options{.deadline = Seconds(60), .lease = Seconds(15), .start_workers = 3};
    options.mode = GetParam();
    const RoundOpening opening{.epoch = Epoch(5),
                               .fragment = FragmentId(0),
                               .base = Version(Below(4) == 0 ? 0 : kBase),
                               .opened_at = now_,
                               .members = members_->LiveTrainers()};
    seen_.emplace(opening, options);
    twin_.emplace(opening, options);
  }
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  static WorkerName Name(uint32_t i) { return "w" + std::to_string(i); }
  template <typename Change>
  void Both(Change change) {
    change(*seen_);
    change(*twin_);
  }

  void Join(uint32_t i) {
    const WorkerRole role = Below(10) == 0 ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
    if (!members_->Join(Name(i), Name(i), role, now_).ok()) return;
    if (seen_ && role == WorkerRole::kTrainer)
      Both([&](Round& round) { round.Joined(Name(i), now_, *members_); });
  }
  void Renew(const Member& member) {
    const bool was_lost = member.state == MemberState::kLost;
    if (!members_->Renew(member.name, member.incarnation, now_).ok()) return;
    if (was_lost && member.role == WorkerRole::kTrainer)
      Both([&](Round& round) { round.Revived(member.name, now_, *members_); });
  }
  void Push(const Member& member) {
    const uint64_t base =
        Below(4) == 0 ? Below(static_cast<uint32_t>(seen_->base().value()) + 1) : seen_->base().value();
    const Contribution contribution{.key = {.epoch = Epoch(5), .base = Version(base), .worker = member.name},
                                    .payload_bytes = 8};
    Both([&](Round& round) { EXPECT_TRUE(round.Arrived(contribution, now_).ok()); });
  }
  void Step() {
    const WorkerName name = Name(Below(8));
    const Member* member = members_->Find(name);
    const uint32_t what = Below(12);
    if (what == 0) now_ += Seconds(Below(8));
    if (what == 1) (void)members_->Expire(now_);
    if (what == 2) Join(Below(8));
    if (what == 3 && Below(8) == 0) Both([&](Round& round) { round.Resumed(now_); });
    if (member == nullptr) return;
    if (what == 4 && Below(2) == 0) (void)members_->Leave(name, member->incarnation, now_);
    if (what == 5 && Below(2) == 0) members_->SetDraining(name, true);
    if (what == 6) Renew(*member);
    if (what == 7 && Below(4) == 0 && member->live()) Both([&](Round& round) { round.Rejected(name); });
    if (!member->live() || member->role != WorkerRole::kTrainer) return;
    if (what == 8 || what == 9) Both([&](Round& round) { round.Pulled(name); });
    if (what >= 10) Push(*member);
  }

  std::mt19937 random_;
  MonoTime now_;
  std::optional<Membership> members_;
  std::optional<Round> seen_;
  std::optional<Round> twin_;
};

TEST_P(RoundViewTest, WhatIsKeptIsWhatWouldBeMadeFromNothing) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Begin(seed);
    for (int step = 0; step < 120; ++step) {
      Step();
      const Round fresh = *twin_;
      ExpectEqual(seen_->View(now_, *members_), fresh.View(now_, *members_));
      if (HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, RoundViewTest, testing::Values(RoundMode::kBarrier, RoundMode::kAsync));

}  // namespace
}  // namespace atl
