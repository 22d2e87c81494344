#include "server/launch/kubernetes_objects.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using State = LaunchedWorker::State;

absl::StatusOr<Pod> PodWith(const std::string& metadata, const std::string& status) {
  return ParsePod(
      R"({"metadata": {"name": "set-3", "uid": "u1")" + metadata + R"(}, "status": )" + status + "}", "set");
}

TEST(KubernetesObjectsTest, ReadsARunningPod) {
  const auto pod = PodWith("", R"({"phase": "Running", "containerStatuses": [{"restartCount": 2,
      "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->uid, "u1");
  EXPECT_EQ(pod->ordinal, 3u);
  EXPECT_EQ(pod->worker.name, "set-3");
  EXPECT_EQ(pod->worker.handle, "set-3");
  EXPECT_EQ(pod->worker.state, State::kRunning);
  EXPECT_EQ(pod->worker.restarts, 2u);
  EXPECT_EQ(pod->worker.last_exit, "OOMKilled (exit code 137)");
  EXPECT_EQ(pod->trouble, "");
}

TEST(KubernetesObjectsTest, ReadsWhyAPodDoesNotRun) {
  const auto looping = PodWith("", R"({"phase": "Running", "containerStatuses": [{"restartCount": 9, "state":
      {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
      "lastState": {"terminated": {"exitCode": 6}}}]})");
  ASSERT_TRUE(looping.ok());
  EXPECT_EQ(looping->worker.state, State::kWaiting);
  EXPECT_EQ(looping->trouble, "CrashLoopBackOff: back-off 5m0s");
  EXPECT_EQ(looping->worker.last_exit, "ended (exit code 6)");
  const auto creating = PodWith("", R"({"phase": "Pending", "containerStatuses": [{"state": {"waiting":
      {"reason": "ContainerCreating"}}}]})");
  EXPECT_EQ(creating->worker.state, State::kStarting);
  EXPECT_EQ(creating->trouble, "");
  const auto homeless =
      PodWith("", R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable", "message": "0/3 nodes have a free GPU"}]})");
  EXPECT_EQ(homeless->trouble, "Unschedulable: 0/3 nodes have a free GPU");
  const auto ending = PodWith(R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")", R"({"phase": "Running"})");
  EXPECT_EQ(ending->worker.state, State::kStopping);
  const auto done = PodWith("", R"({"phase": "Failed", "containerStatuses": [{"state":
      {"terminated": {"reason": "Error", "exitCode": 1}}}]})");
  EXPECT_EQ(done->worker.state, State::kStopped);
  EXPECT_EQ(done->worker.last_exit, "Error (exit code 1)");
  const auto bare = PodWith("", "null");
  EXPECT_EQ(bare->worker.state, State::kStarting);
}

TEST(KubernetesObjectsTest, LeavesOutPodsOfOthers) {
  const auto page =
      ParsePodList(R"({"metadata": {"continue": "c1"}, "items": [{"metadata": {"name": "set-1"}},
      {"metadata": {"name": "set-debug"}}, {"metadata": {"name": "set-01"}}, {"metadata": {"name": "other-0"}}]})",
                   "set");
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->pods.size(), 1u);
  EXPECT_EQ(page->pods[0].worker.name, "set-1");
  EXPECT_EQ(page->next, "c1");
  EXPECT_TRUE(absl::IsNotFound(ParsePod(R"({"metadata": {"name": "set-debug"}})", "set").status()));
}

TEST(KubernetesObjectsTest, NamesWhatItCannotRead) {
  for (const char* text : {"", "null", "[]", "<html>", R"({"items": [{"metadata": {"name": 7}}]})",
                           R"({"items": [{"metadata": {"name": "set-1"}, "status": {"phase": {}}}]})",
                           R"({"metadata": {"continue": 3}})"}) {
    const auto page = ParsePodList(text, "set");
    EXPECT_TRUE(absl::IsInvalidArgument(page.status())) << text;
    EXPECT_THAT(std::string(page.status().message()), HasSubstr("PodList")) << text;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseReplicas(R"({"spec": {"replicas": "4"}})").status()));
}

TEST(KubernetesObjectsTest, ReplicasThereAndBack) {
  EXPECT_EQ(ReplicasPatch(12), R"({"spec":{"replicas":12}})");
  EXPECT_EQ(*ParseReplicas(ReplicasPatch(12)), 12u);
  EXPECT_EQ(*ParseReplicas(R"({"spec": {}})"), 0u);
  EXPECT_THAT(DeleteOnly("u7"),
              AllOf(HasSubstr(R"("preconditions":{"uid":"u7"})"), HasSubstr("DeleteOptions")));
}

}  // namespace
}  // namespace atl
