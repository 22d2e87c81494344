#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "common/thread_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/storage/store_model.h"
#include "tests/storage/temp_dir.h"

// A machine that has no thread left: calls are refused, the process goes on.

namespace {

std::atomic<bool> g_no_threads = false;

}  // namespace

/// Stands before the library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
  static auto* const real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return g_no_threads ? EAGAIN : real(thread, attributes, body, argument);
}

namespace atl {
namespace {

using testing::HasSubstr;

class ThreadsTest : public testing::Test {
 protected:
  ~ThreadsTest() override { g_no_threads = false; }
};

TEST_F(ThreadsTest, TheCheckNamesTheLimits) {
  EXPECT_TRUE(CheckThreads(64).ok());
  g_no_threads = true;
  const absl::Status none = CheckThreads(64);
  EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(none.ToString(), HasSubstr("pids.max"));
}

TEST_F(ThreadsTest, AStoreThatIsServedGoesOnWithoutNewOnes) {
  const TempDir temp;
  const StoreModel model = StoreModel::Make(64, 5000);
  auto opened = OpenRocksDbStore({.data_dir = temp.path() + "/run", .headroom_bytes = 0});
  ASSERT_TRUE(opened.ok()) << opened.status();
  RunStore& store = **opened;
  ASSERT_TRUE(store.Recover().ok());
  ASSERT_TRUE(model.CreateRun(store).ok());
  ASSERT_TRUE(model.Seed(store).ok());
  ASSERT_TRUE(model.Push(store, model.KeyOf("w", Version(0))).ok());
  ASSERT_TRUE(store.CreateCheckpoint({.name = "one", .created_unix_ns = 1}).ok());
  g_no_threads = true;
  const auto rejected = store.OpenCheckpoint("one", CheckpointUse::kRestore);
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kResourceExhausted) << rejected.status();
  EXPECT_THAT(rejected.status().ToString(), HasSubstr("a thread cannot be started"));
  const auto made = store.CreateCheckpoint({.name = "two", .created_unix_ns = 2});
  EXPECT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(store.ListCheckpoints(true)->size(), 2u);
  EXPECT_TRUE(model.Commit(store, Version(1), "w").ok());
  EXPECT_TRUE(model.Store(store, Version(1), 2).ok());
  g_no_threads = false;
  EXPECT_TRUE(store.OpenCheckpoint("two", CheckpointUse::kRestore).ok());
}

}  // namespace
}  // namespace atl
