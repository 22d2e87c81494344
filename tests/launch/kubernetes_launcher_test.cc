#include "server/launch/kubernetes_launcher.h"

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/api_server.h"
#include "tests/launch/wait_until.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = LaunchedWorker::State;

class KubernetesLauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ApiServer::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~KubernetesLauncherTest() override { launcher_.reset(); }

  KubernetesLauncherOptions Options() const {
    KubernetesLauncherOptions options;
    options.api = server_->Options();
    options.stateful_set = "train-worker";
    options.selector = "app.kubernetes.io/name=train";
    options.look_every = Seconds(0.02);
    return options;
  }
  void Launch(const KubernetesLauncherOptions& options) {
    auto launcher = KubernetesLauncher::Create(options, Logger());
    ASSERT_TRUE(launcher.ok()) << launcher.status();
    launcher_ = *std::move(launcher);
    launcher_->SetEventSink([this](const Launcher::Event& event) {
      MutexLock lock(&mutex_);
      events_.push_back((event.launched ? "+" : "-") + event.message);
    });
    // Once it has looked, what comes after is news.
    const size_t before = server_->Requests().size();
    ASSERT_TRUE(WaitUntil([&] { return server_->Requests().size() >= before + 2; }));
  }
  std::vector<std::string> Events() {
    MutexLock lock(&mutex_);
    return events_;
  }
  bool HasEvent(const std::string& text) {
    return WaitUntil([&] {
      const auto events = Events();
      return std::any_of(events.begin(), events.end(),
                         [&](const std::string& event) { return event.find(text) != std::string::npos; });
    });
  }
  bool Shows(size_t workers) const {
    return WaitUntil([&] { return launcher_->view().workers.size() == workers; });
  }
  /// After a look that began after this call.
  bool LooksAgain() const {
    const size_t before = server_->Requests("GET").size();
    return WaitUntil([&] { return server_->Requests("GET").size() >= before + 6; });
  }
  bool Complains(const std::string& of) const {
    return WaitUntil([&] { return launcher_->view().error.find(of) != std::string::npos; });
  }

  std::unique_ptr<ApiServer> server_;
  Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<KubernetesLauncher> launcher_;
};

TEST_F(KubernetesLauncherTest, ScalesTheSetAndShowsItsPods) {
  Launch(Options());
  EXPECT_EQ(launcher_->view().kind, "kubernetes");
  ASSERT_TRUE(launcher_->Scale(7).ok());
  EXPECT_EQ(launcher_->view().target, 7u);
  const auto patch = server_->Requests("PATCH").at(0);
  EXPECT_EQ(patch["path"], "/apis/apps/v1/namespaces/ml/statefulsets/train-worker/scale");
  EXPECT_EQ(patch["body"], R"({"spec":{"replicas":7}})");
  EXPECT_EQ(patch["content_type"], "application/merge-patch+json");
  // The server gives three pods at a time, and one that is not of the set.
  ASSERT_TRUE(Shows(7));
  const LauncherView view = launcher_->view();
  EXPECT_EQ(view.workers[6].name, "train-worker-6");
  EXPECT_EQ(view.workers[6].state, State::kRunning);
  EXPECT_EQ(view.error, "");
  EXPECT_TRUE(HasEvent("+train-worker-6 started"));
  EXPECT_TRUE(launcher_->Owns("train-worker-6"));
  EXPECT_FALSE(launcher_->Owns("train-worker-7"));
  EXPECT_FALSE(launcher_->Owns("train-worker-debug"));
  ASSERT_TRUE(launcher_->Scale(0).ok());
  ASSERT_TRUE(Shows(0));
  EXPECT_TRUE(HasEvent("-train-worker-6 ended: its pod is gone"));
}

TEST_F(KubernetesLauncherTest, TheDrainedPodWithTheHighestNumberIsGivenUpWhenItHasLeft) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  const auto middle = launcher_->Release("train-worker-1");
  ASSERT_TRUE(middle.ok());
  EXPECT_THAT(*middle, HasSubstr("the cluster restarts its pod"));
  EXPECT_THAT(*middle, HasSubstr("workers scale 2"));
  launcher_->Left("train-worker-1");
  const auto highest = launcher_->Release("train-worker-2");
  ASSERT_TRUE(highest.ok());
  EXPECT_THAT(*highest, HasSubstr("when it has left, the StatefulSet is scaled to 2"));
  EXPECT_EQ(launcher_->view().target, 2u) << "wanted, and remembered for the next start";
  EXPECT_THAT(launcher_->view().drained, ::testing::ElementsAre("train-worker-2"));
  EXPECT_EQ(launcher_->view().workers[2].state, State::kDraining);
  EXPECT_EQ(launcher_->view().workers[1].state, State::kRunning);
  EXPECT_EQ(server_->Requests("PATCH").size(), 1u) << "it finishes its round first";
  launcher_->Left("train-worker-2");
  ASSERT_TRUE(Shows(2));
  EXPECT_EQ(launcher_->view().target, 2u);
  EXPECT_THAT(launcher_->view().drained, IsEmpty());
  EXPECT_EQ(server_->Requests("PATCH").at(1)["body"], R"({"spec":{"replicas":2}})");
  // One more is one more: the same number comes back.
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  EXPECT_EQ(server_->Requests("PATCH").size(), 3u);
}

TEST_F(KubernetesLauncherTest, AScaleToTheWantedNumberLetsADrainingPodFinish) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  ASSERT_TRUE(launcher_->Release("train-worker-2").ok());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(LooksAgain());
  EXPECT_EQ(server_->Requests("PATCH").size(), 1u) << "it finishes its round first";
  EXPECT_EQ(launcher_->view().target, 2u);
  EXPECT_TRUE(launcher_->IsReleased("train-worker-2"));
  launcher_->Left("train-worker-2");
  ASSERT_TRUE(Shows(2));
  EXPECT_EQ(server_->Requests("PATCH").back()["body"], R"({"spec":{"replicas":2}})");
  // Fewer than that are fewer, whoever drains.
  ASSERT_TRUE(launcher_->Release("train-worker-1").ok());
  ASSERT_TRUE(launcher_->Scale(0).ok());
  EXPECT_TRUE(Shows(0));
}

TEST_F(KubernetesLauncherTest, ADrainingPodThatIsWantedAgainKeepsItsReplica) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  ASSERT_TRUE(launcher_->Release("train-worker-2").ok());
  EXPECT_TRUE(launcher_->IsReleased("train-worker-2"));
  EXPECT_THAT(launcher_->view().wanted, ::testing::ElementsAre("train-worker-0", "train-worker-1"));
  launcher_->Reclaim("train-worker-1");
  EXPECT_TRUE(launcher_->IsReleased("train-worker-2"));
  launcher_->Reclaim("train-worker-2");
  EXPECT_FALSE(launcher_->IsReleased("train-worker-2"));
  EXPECT_EQ(launcher_->view().target, 3u);
  launcher_->Left("train-worker-2");
  // A look that would give it up comes before this one's patch.
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  for (const auto& patch : server_->Requests("PATCH")) EXPECT_EQ(patch["body"], R"({"spec":{"replicas":3}})");
}

TEST_F(KubernetesLauncherTest, ALookThatReadTheReplicasBeforeAScaleDoesNotUndoIt) {
  KubernetesLauncherOptions options = Options();
  options.api.attempts = 100'000;  // a look waits as long as this test lets it
  Launch(options);
  server_->Block("this look", "GET", "/pods");
  ASSERT_TRUE(WaitUntil([&] { return server_->Blocked("this look"); }));
  ASSERT_TRUE(launcher_->Scale(3).ok());
  server_->Block("the next look", "GET", "/scale");
  server_->Allow("this look");
  // It read 0 replicas, and lists the new pods.
  EXPECT_TRUE(Shows(3));
  EXPECT_EQ(launcher_->view().target, 3u);
  const auto highest = launcher_->Release("train-worker-2");
  server_->Allow("the next look");
  ASSERT_TRUE(highest.ok());
  EXPECT_THAT(*highest, HasSubstr("when it has left, the StatefulSet is scaled to 2"));
}

TEST_F(KubernetesLauncherTest, AScaleIsNewerThanTheFirstNumberThatALookAsksFor) {
  KubernetesLauncherOptions options = Options();
  options.api.attempts = 100'000;  // a look asks as long as this test lets it
  Launch(options);
  server_->Block("the first number", "PATCH", "/scale", R"("replicas":2)");
  launcher_->Begin(2);
  ASSERT_TRUE(WaitUntil([&] { return server_->Blocked("the first number"); }));
  ASSERT_TRUE(launcher_->Scale(3).ok());
  server_->Allow("the first number");
  ASSERT_TRUE(LooksAgain());
  EXPECT_TRUE(Shows(3));
  EXPECT_EQ(launcher_->view().target, 3u);
  EXPECT_EQ(server_->Requests("PATCH").back()["body"], R"({"spec":{"replicas":3}})");
}

TEST_F(KubernetesLauncherTest, ALookAsksForNothingWhileAScaleIsUnderWay) {
  KubernetesLauncherOptions options = Options();
  options.api.attempts = 100'000;
  Launch(options);
  server_->Block("the first number", "PATCH", "/scale", R"("replicas":2)");
  server_->Block("the scale", "PATCH", "/scale", R"("replicas":3)");
  launcher_->Begin(2);
  ASSERT_TRUE(WaitUntil([&] { return server_->Blocked("the first number"); }));
  std::thread scale([this] { EXPECT_TRUE(launcher_->Scale(3).ok()); });
  EXPECT_TRUE(WaitUntil([&] { return server_->Blocked("the scale"); }));
  server_->Allow("the first number");
  EXPECT_TRUE(LooksAgain());
  EXPECT_EQ(launcher_->view().target, 0u) << "as the cluster says";
  server_->Allow("the scale");
  scale.join();
  EXPECT_TRUE(Shows(3));
  EXPECT_EQ(server_->Requests("PATCH").back()["body"], R"({"spec":{"replicas":3}})");
}

TEST_F(KubernetesLauncherTest, ALookGivesNoReplicaUpThatIsWantedAgain) {
  KubernetesLauncherOptions options = Options();
  options.api.attempts = 100'000;
  Launch(options);
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(Shows(3));
  const std::vector<std::function<void()>> orders = {[&] { EXPECT_TRUE(launcher_->Scale(3).ok()); },
                                                     [&] { launcher_->Reclaim("train-worker-2"); }};
  for (const auto& order : orders) {
    const std::string name = "giving up, before order " + std::to_string(&order - orders.data());
    server_->Block(name, "PATCH", "/scale", R"("replicas":2)");
    ASSERT_TRUE(launcher_->Release("train-worker-2").ok());
    launcher_->Left("train-worker-2");
    ASSERT_TRUE(WaitUntil([&] { return server_->Blocked(name); }));
    order();
    server_->Allow(name);
    ASSERT_TRUE(LooksAgain());
    EXPECT_TRUE(Shows(3));
    EXPECT_EQ(launcher_->view().target, 3u) << name;
    EXPECT_FALSE(launcher_->IsReleased("train-worker-2"));
    EXPECT_EQ(server_->Requests("PATCH").back()["body"], R"({"spec":{"replicas":3}})") << name;
  }
}

TEST_F(KubernetesLauncherTest, ASetThatWasScaledMeanwhileKeepsItsReplicas) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(Shows(2));
  ASSERT_TRUE(launcher_->Release("train-worker-1").ok());
  ASSERT_TRUE(launcher_->Scale(5).ok());
  launcher_->Left("train-worker-1");
  ASSERT_TRUE(Shows(5));
  EXPECT_EQ(server_->Requests("PATCH").size(), 2u);
}

TEST_F(KubernetesLauncherTest, AsksForTheFirstTargetUntilItIsGranted) {
  KubernetesLauncherOptions options = Options();
  options.api.attempts = 1;
  options.look_every = Seconds(600);  // nobody else takes the faults
  Launch(options);
  for (int i = 0; i < 2; ++i) server_->AddFault({{"status", 503}});
  launcher_->Begin(2);
  ASSERT_TRUE(WaitUntil([&] { return server_->Requests("PATCH").size() == 1; }));
  EXPECT_TRUE(Complains("503"));
  launcher_->Begin(2);
  ASSERT_TRUE(WaitUntil([&] { return server_->Requests("PATCH").size() == 2; }));
  launcher_->Begin(2);
  EXPECT_TRUE(Shows(2));
  EXPECT_EQ(launcher_->view().target, 2u);
  EXPECT_EQ(server_->Requests("PATCH").size(), 3u);
}

TEST_F(KubernetesLauncherTest, AWorkerMayHaveASetOfItsOwn) {
  server_->SetsPerWorker(3);
  KubernetesLauncherOptions options = Options();
  options.set_per_worker = true;
  Launch(options);
  ASSERT_TRUE(launcher_->Scale(2).ok());
  EXPECT_EQ(launcher_->view().target, 2u);
  ASSERT_EQ(server_->Requests("PATCH").size(), 2u);
  EXPECT_EQ(server_->Requests("PATCH")[1]["path"],
            "/apis/apps/v1/namespaces/ml/statefulsets/train-worker-1/scale");
  EXPECT_EQ(server_->Requests("PATCH")[1]["body"], R"({"spec":{"replicas":1}})");
  ASSERT_TRUE(Shows(2));
  EXPECT_EQ(launcher_->view().workers[1].name, "train-worker-1");
  EXPECT_EQ(launcher_->view().workers[1].handle, "train-worker-1-0");
  EXPECT_TRUE(launcher_->Owns("train-worker-1"));
  EXPECT_FALSE(launcher_->Owns("train-worker-1-0"));
  ASSERT_TRUE(launcher_->Restart("train-worker-1").ok());
  EXPECT_EQ(server_->Requests("DELETE").at(0)["path"], "/api/v1/namespaces/ml/pods/train-worker-1-0");
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_EQ(server_->Requests("PATCH").at(2)["body"], R"({"spec":{"replicas":0}})");
  EXPECT_TRUE(Shows(1));
}

TEST_F(KubernetesLauncherTest, AWorkerWithoutASetOfItsOwnIsRejected) {
  server_->SetsPerWorker(2);
  KubernetesLauncherOptions options = Options();
  options.set_per_worker = true;
  Launch(options);
  const absl::Status scaled = launcher_->Scale(3);
  EXPECT_TRUE(absl::IsFailedPrecondition(scaled)) << scaled;
  EXPECT_THAT(std::string(scaled.message()), HasSubstr("train-worker-2"));
  EXPECT_TRUE(server_->Requests("PATCH").empty());
  // Asked for at the start: shown, and what there is is looked at all the same.
  launcher_->Begin(3);
  EXPECT_TRUE(Complains("train-worker-2"));
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_TRUE(Shows(1));
  EXPECT_TRUE(WaitUntil([&] { return launcher_->view().error.empty(); }));
}

TEST_F(KubernetesLauncherTest, RestartDeletesThisPodAndNoOther) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(Shows(2));
  ASSERT_TRUE(launcher_->Restart("train-worker-1").ok());
  const auto deleted = server_->Requests("DELETE").at(0);
  EXPECT_EQ(deleted["path"], "/api/v1/namespaces/ml/pods/train-worker-1");
  EXPECT_THAT(deleted["body"].get<std::string>(), HasSubstr("\"uid\":\"00000003-uid\""));
  EXPECT_TRUE(HasEvent("-train-worker-1 ended: its pod is gone"));
  EXPECT_TRUE(HasEvent("+train-worker-1 started (pod 00000004"));
}

TEST_F(KubernetesLauncherTest, OneThatWasToRestartAndDoesNotAnswerLosesItsPod) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(Shows(2));
  launcher_->Lost("other-0", /*restart=*/true);
  launcher_->Lost("train-worker-1", /*restart=*/true);
  EXPECT_TRUE(HasEvent("+train-worker-1 started (pod 00000004"));
  EXPECT_EQ(server_->Requests("DELETE").size(), 1u);
}

TEST_F(KubernetesLauncherTest, ARestartWhoseAnswerWasLostHitsThePodOnce) {
  KubernetesLauncherOptions options = Options();
  options.look_every = Seconds(600);  // nobody else takes the faults
  Launch(options);
  ASSERT_TRUE(launcher_->Scale(1).ok());
  ASSERT_TRUE(Shows(1));
  server_->AddFault({{"delay", 0}});    // the GET that asks for the pod's uid
  server_->AddFault({{"lose", true}});  // the DELETE: done, but nobody hears of it
  ASSERT_TRUE(launcher_->Restart("train-worker-0").ok());
  EXPECT_GE(server_->Requests("DELETE").size(), 2u);
  // The first of the set was the cluster's second pod; there was one more since, not two.
  ASSERT_TRUE(launcher_->Restart("train-worker-0").ok());
  EXPECT_THAT(server_->Requests("DELETE").back()["body"].get<std::string>(), HasSubstr("00000003-uid"));
}

TEST_F(KubernetesLauncherTest, OthersAreNotItsWorkers) {
  Launch(Options());
  for (const char* name : {"train-worker-debug", "other-0", "", "train-worker-0/../../secrets"}) {
    EXPECT_TRUE(absl::IsNotFound(launcher_->Restart(name))) << name;
  }
  EXPECT_TRUE(absl::IsNotFound(launcher_->Restart("train-worker-5")));
  EXPECT_THAT(server_->Requests("DELETE"), IsEmpty());
}

TEST_F(KubernetesLauncherTest, ShowsPodsThatDoNotRun) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  server_->SetPodStatus(
      "train-worker-1",
      {{"phase", "Pending"},
       {"containerStatuses",
        {{{"restartCount", 0},
          {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no such image"}}}}}}}}});
  EXPECT_TRUE(Complains("train-worker-1 ImagePullBackOff: no such image"));
  server_->SetPodStatus(
      "train-worker-1",
      {{"phase", "Running"},
       {"containerStatuses",
        {{{"restartCount", 1},
          {"state", {{"running", nlohmann::json::object()}}},
          {"lastState", {{"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}}}}}}}}});
  ASSERT_TRUE(WaitUntil([&] { return launcher_->view().error.empty(); }));
  const LauncherView view = launcher_->view();
  EXPECT_EQ(view.workers[1].restarts, 1u);
  EXPECT_EQ(view.workers[1].last_exit, "OOMKilled (exit code 137)");
}

TEST_F(KubernetesLauncherTest, ErrorsAreShownUntilTheyAreOver) {
  Launch(Options());
  server_->Forbid("list pods");
  EXPECT_TRUE(Complains("verb 'list' on the resource 'pods'"));
  server_->Forbid("patch statefulsets/scale\ndelete pods");
  EXPECT_TRUE(WaitUntil([&] { return launcher_->view().error.empty(); }));
  const absl::Status scaled = launcher_->Scale(3);
  EXPECT_TRUE(absl::IsPermissionDenied(scaled));
  EXPECT_THAT(std::string(scaled.message()),
              AllOf(HasSubstr("verb 'patch'"), HasSubstr("'statefulsets/scale'")));
  EXPECT_EQ(launcher_->view().target, 0u);
  server_->Forbid("delete pods");
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(launcher_->Restart("train-worker-0")));
  ASSERT_TRUE(WaitUntil([&] { return launcher_->view().workers.size() == 1; }));
  server_->AcceptTokens("another");
  EXPECT_TRUE(Complains("answered 401"));
  EXPECT_EQ(launcher_->view().workers.size(), 1u);  // as last seen
}

TEST_F(KubernetesLauncherTest, ASetThatIsMissingIsNamed) {
  KubernetesLauncherOptions options = Options();
  options.stateful_set = "misspelt";
  Launch(options);
  EXPECT_TRUE(Complains("\"misspelt\" not found"));
  EXPECT_TRUE(absl::IsNotFound(launcher_->Scale(1)));
}

TEST_F(KubernetesLauncherTest, ShutdownLeavesThePodsAloneAndDoesNotWait) {
  Launch(Options());
  ASSERT_TRUE(launcher_->Scale(2).ok());
  launcher_->Shutdown();
  launcher_->Shutdown();
  EXPECT_EQ(server_->Requests("DELETE").size(), 0u);
  EXPECT_EQ(server_->Requests("PATCH").size(), 1u);
  const size_t asked = server_->Requests().size();
  server_->AddFault({{"status", 503}});
  EXPECT_TRUE(absl::IsCancelled(launcher_->Scale(1)));
  EXPECT_EQ(server_->Requests().size(), asked + 1);
}

TEST(PodEventsTest, TellsLivesApart) {
  const auto pod = [](const char* uid, State state, uint32_t restarts) {
    Pod made;
    made.uid = uid;
    made.worker.name = "s-0";
    made.worker.state = state;
    made.worker.restarts = restarts;
    made.worker.last_exit = restarts > 0 ? "Error (exit code 6)" : "";
    return made;
  };
  using Pods = std::map<uint32_t, Pod>;
  const Pods running = {{0, pod("a", State::kRunning, 0)}};
  EXPECT_THAT(PodEvents(running, running), IsEmpty());
  EXPECT_THAT(PodEvents({}, {{0, pod("a", State::kStarting, 0)}}), IsEmpty());
  const auto restarted = PodEvents(running, {{0, pod("a", State::kRunning, 1)}});
  ASSERT_EQ(restarted.size(), 2u);
  EXPECT_FALSE(restarted[0].launched);
  EXPECT_EQ(restarted[0].message, "s-0 ended: Error (exit code 6)");
  EXPECT_TRUE(restarted[1].launched);
  const auto ending = PodEvents(running, {{0, pod("a", State::kStopping, 0)}});
  ASSERT_EQ(ending.size(), 1u);
  EXPECT_EQ(ending[0].message, "s-0 ended: its pod is being ended");
  EXPECT_THAT(PodEvents({{0, pod("a", State::kStopping, 0)}}, {}), IsEmpty());
}

}  // namespace
}  // namespace atl
