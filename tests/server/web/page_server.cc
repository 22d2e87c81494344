// For browser_test.py: serves the page of a real run, of a hostile one, of one that refuses workers and of
// one that asks everybody for a token, and of one that was restored. Prints {"run": url, "hostile": url,
// "refusing": url, "restored": url, "asking": url};
// then each line on its input is an order: "round" makes one; "asked" prints what the hostile one was asked
// to do. Ends when its input does.
#include <iostream>

#include "nlohmann/json.hpp"
#include "server/web/web_server.h"
#include "tests/fakes/fake_coordinator.h"
#include "tests/server/web/fake_policy.h"
#include "tests/server/web/web_run.h"

namespace atl {
namespace {

constexpr char kScript[] =
    "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script>\"'`${window.hacked=3}";

/// Whatever can be a text, is a hostile one.
void FillHostile(FakeCoordinator& coordinator) {
  const std::string bad = kScript;
  StatusView& status = coordinator.status_view;
  status.run_name = status.run_id = status.state_reason = status.data_directory = status.storage_error = bad;
  status.state = RunState::kDegraded;
  FragmentStatusView fragment;
  fragment.version = Version(3);
  fragment.missing = {bad, std::string(300, 'w')};
  fragment.waiting_for = bad;
  status.fragments = {fragment};
  status.evaluations.push_back({.version = Version(3),
                                .loss = 2,
                                .tasks = {{.task = bad, .metric = bad, .value = 0.5, .questions = 1}}});
  status.waiting.push_back({.what = bad, .from = {bad}, .ends_in_s = 5, .since_s = 5});
  for (const std::string& name : {bad, std::string(300, 'W'), std::string("__proto__"),
                                  std::string("\xe2\x80\xae"
                                              "evil")}) {
    WorkerView worker;
    worker.name = name;
    worker.role = 1;
    worker.state = name == bad ? bad : "active";
    worker.device.device = bad;
    worker.progress.waiting_for = bad;
    coordinator.worker_views.push_back(worker);
  }
  coordinator.admin_control.launcher.kind = bad;
  coordinator.admin_control.launcher.error = bad;
  CheckpointView checkpoint;
  checkpoint.name = checkpoint.damage = bad;
  coordinator.admin_control.checkpoints = {checkpoint};
  coordinator.admin_control.answer = bad;
  coordinator.admin_control.on_rounds = [bad](FragmentId, Version after, uint32_t) {
    RoundListView list{.rounds = {}, .head = Version(3)};
    for (uint64_t v = after.value() + 1; v <= 3; ++v) {
      RoundDetailView round;
      round.summary.version = Version(v);
      round.summary.train_loss = 4.0 / static_cast<double>(v);
      round.summary.close_reason = bad;
      round.summary.committed_tokens = v;
      round.contributions = {{.worker = bad, .loss = 1}, {.worker = "__proto__", .loss = 2}};
      list.rounds.push_back(round);
    }
    return list;
  };
}

/// Refuses more workers than the page lists, two of them without a valid name.
void FillRejecting(FakeCoordinator& coordinator) {
  StatusView& status = coordinator.status_view;
  for (const char* worker : {"", "", "w9", "w10", "w11", "w12"}) {
    RejectedJoinView rejected;
    rejected.worker = worker;
    rejected.address = "10.0.0." + std::to_string(status.refused_joins.size() + 1);
    rejected.message = kScript;
    rejected.since_s = 60;
    rejected.attempts = 3;
    status.refused_joins.push_back(rejected);
  }
}

void PublishHostile(FakeCoordinator& coordinator) {
  for (uint64_t i = 1; i <= 27; ++i) {
    EventView event;
    event.sequence = i;
    event.unix_ns = static_cast<int64_t>(i) * 1'000'000'000;
    event.kind = static_cast<EventKind>(i);
    event.worker = kScript;
    event.message = kScript;
    coordinator.Publish(event);
  }
}

std::unique_ptr<WebServer> Serve(Coordinator* coordinator, const AccessPolicy* policy, const Clock* clock) {
  WebServerOptions options;
  options.address = "127.0.0.1:0";
  options.tick = Seconds(0.1);
  options.access = policy;
  options.token_hint = "This one is 'admin-token'.";
  auto server = WebServer::Start(options, coordinator, clock, Logger());
  return *std::move(server);
}

void Run() {
  const SystemClock clock{};
  const FakePolicy open;
  const FakePolicy asking(/*asks_everybody=*/true);
  FakeCoordinator hostile;
  FillHostile(hostile);
  FakeCoordinator rejecting;
  FillRejecting(rejecting);
  WebRun run;
  for (int i = 0; i < 5; ++i) run.Round();
  WebRun restored;
  restored.scores_tasks = true;
  for (int i = 0; i < 14; ++i) {
    restored.Round();
    if (i == 5) (void)restored.Checkpoint("six");
  }
  (void)restored.Restore("six");
  for (int i = 0; i < 4; ++i) restored.Round();
  const auto restored_page = Serve(&restored.coordinator(), &open, &clock);
  const auto run_page = Serve(&run.coordinator(), &open, &clock);
  const auto hostile_page = Serve(&hostile, &open, &clock);
  const auto rejecting_page = Serve(&rejecting, &open, &clock);
  const auto asking_page = Serve(&run.coordinator(), &asking, &clock);
  PublishHostile(hostile);
  const nlohmann::json urls = {{"run", run_page->url()},
                               {"hostile", hostile_page->url()},
                               {"refusing", rejecting_page->url()},
                               {"restored", restored_page->url()},
                               {"asking", asking_page->url()}};
  std::cout << urls.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer = nlohmann::json::array();
    if (line == "round") run.Round();
    for (const auto& asked : hostile.admin_control.asked()) {
      if (asked.what != "checkpoint list") answer.push_back(asked.what);
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace
}  // namespace atl

int main() {
  atl::Run();
  return 0;
}
