#include "common/memory_limit.h"

#include <gtest/gtest.h>

#include <string>

#include "common/file.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() { Write("meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n"); }
  void Write(const std::string& name, const std::string& text) {
    const std::string path = dir_.File(name);
    ASSERT_TRUE(CreateDirs(path.substr(0, path.find_last_of('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  MemoryLimit Read() const {
    return ReadMemoryLimit({.self_cgroup = dir_.File("self"),
                            .cgroup_root = dir_.File("cgroup"),
                            .meminfo = dir_.File("meminfo")});
  }
  static constexpr uint64_t kMiB = uint64_t{1} << 20;
  const TestDir dir_;
};

TEST_F(MemoryLimitTest, WithoutALimitItIsThePhysicalMemory) {
  EXPECT_EQ(Read().bytes, 8192 * kMiB);
  EXPECT_EQ(Read().source, "physical memory");
  Write("self", "0::/\n");
  Write("cgroup/memory.max", "max\n");
  EXPECT_EQ(Read().bytes, 8192 * kMiB);
  Write("self", "4:memory:/\n");
  Write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().source, "physical memory");
}

TEST_F(MemoryLimitTest, OfVersionTwoTheSmallestOnTheWayUpCounts) {
  Write("self", "0::/slice/pod/container\n");
  Write("cgroup/slice/pod/container/memory.max", "max\n");
  Write("cgroup/slice/pod/memory.max", "536870912\n");
  Write("cgroup/slice/memory.max", "1073741824\n");
  EXPECT_EQ(Read().bytes, 512 * kMiB);
  EXPECT_EQ(Read().source, "cgroup");
  Write("cgroup/slice/pod/container/memory.max", "268435456\n");
  EXPECT_EQ(Read().bytes, 256 * kMiB);
}

TEST_F(MemoryLimitTest, VersionOneToo) {
  Write("self", "9:name=systemd:/x\n4:cpu,memory:/docker/abc\n1:cpuset:/\n");
  Write("cgroup/memory/docker/abc/memory.limit_in_bytes", "134217728\n");
  EXPECT_EQ(Read().bytes, 128 * kMiB);
}

TEST_F(MemoryLimitTest, AContainerThatSeesItsCgroupAsTheRoot) {
  // The path is the host's; what is mounted is the container's.
  Write("self", "4:memory:/kubepods/pod1/abc\n");
  Write("cgroup/memory/memory.limit_in_bytes", "134217728\n");
  EXPECT_EQ(Read().bytes, 128 * kMiB);
  Write("self", "0::/\n");
  Write("cgroup/memory.max", "67108864\n");
  EXPECT_EQ(Read().bytes, 64 * kMiB);
}

TEST_F(MemoryLimitTest, ThisMachineHasSome) { EXPECT_GT(ReadMemoryLimit().bytes, 16 * kMiB); }

}  // namespace
}  // namespace atl
