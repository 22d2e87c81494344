#ifndef ATOLL_TESTS_SERVER_WEB_WEB_RUN_H_
#define ATOLL_TESTS_SERVER_WEB_WEB_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protos/config/run_config_codec.h"
#include "tests/fakes/fake_launcher.h"
#include "tests/server/rpc/configured_run.h"

namespace atl {

/// A real coordinator with two workers, a launcher that starts nothing, and rounds when the test says so.
class WebRun {
 public:
  WebRun()
      : run_(ConfiguredRun(), {.config_codec = &codec_,
                               .make_launcher = [this] { return std::make_unique<FakeLauncher>(log_); }}) {
    // The time of day of today, for those who look at it.
    run_.clock().JumpWall(SystemClock().WallNow() - run_.clock().WallNow());
    workers_ = run_.Begin({"w0", "w1"}, Fill([](size_t) { return 1.0F; }));
  }

  /// Both push; the next version is published and evaluated.
  void Round() {
    run_.clock().Advance(Seconds(2));
    for (const MemberRef& worker : workers_) (void)run_.Pull(worker);
    for (const MemberRef& worker : workers_) {
      const double loss = 5.0 / static_cast<double>(head_ + 1) + (worker.worker == "w1" ? 0.25 : 0);
      (void)run_.Push(worker, head_, Fill([](size_t) { return 0.01F; }), {.loss = loss});
    }
    (void)run_.Pull(workers_[0], head_);
    ++head_;
    HeartbeatCall report;
    report.evaluations.push_back({.version = Version(head_), .loss = 5.5 / static_cast<double>(head_)});
    if (scores_tasks) {
      const double share = 1 - 0.75 / static_cast<double>(head_);
      for (const char* const metric : {"acc", "acc_norm"}) {
        report.evaluations.back().tasks.push_back({.task = "hellaswag",
                                                   .metric = metric,
                                                   .value = share,
                                                   .standard_error = 0.01,
                                                   .questions = 100});
      }
    }
    (void)run_.coordinator().Heartbeat(workers_[0], report);
  }

  absl::Status Checkpoint(const std::string& name) {
    return run_.admin().CreateCheckpoint({.user = "ann", .peer = "test"}, name).status();
  }

  /// The contents of the checkpoint are the next version; the workers join again.
  absl::Status Restore(const std::string& name) {
    run_.clock().Advance(Seconds(2));
    const auto restored = run_.admin().RestoreCheckpoint({.user = "ann", .peer = "test"}, name);
    if (!restored.ok()) return restored.status();
    head_ = restored->versions.front().value();
    for (MemberRef& worker : workers_) worker = run_.Join(worker.worker);
    return absl::OkStatus();
  }

  TestRun& run() { return run_; }
  Coordinator& coordinator() { return run_.coordinator(); }
  uint64_t head() const { return head_; }
  uint32_t launched() {
    MutexLock lock(&log_->mutex);
    return static_cast<uint32_t>(log_->wanted.size());
  }

  bool scores_tasks = false;  // evaluations have scores

 private:
  const RunConfigCodec codec_;
  const std::shared_ptr<FakeLauncher::Log> log_ = std::make_shared<FakeLauncher::Log>();
  TestRun run_;
  std::vector<MemberRef> workers_;
  uint64_t head_ = 0;
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_WEB_WEB_RUN_H_
