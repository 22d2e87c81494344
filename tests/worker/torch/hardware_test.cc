#include "worker/torch/hardware.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "common/file.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

TEST(HardwareTest, FindsTheProcessorInEveryKindOfCpuinfo) {
  EXPECT_EQ(ProcessorIn("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\n"
                        "model name\t: Intel(R) Xeon(R) Processor @ 2.60GHz\n"),
            "Intel(R) Xeon(R) Processor @ 2.60GHz");
  EXPECT_EQ(ProcessorIn("processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"),
            "Raspberry Pi 5 Model B Rev 1.0");
  EXPECT_EQ(ProcessorIn("processor\t: 0\nCPU implementer\t: 0x41\n"), "");
  EXPECT_EQ(ProcessorIn(""), "");
}

TEST(HardwareTest, TheLimitOfTheOwnCgroupIsItsMemoryAndWhatIsNotKnownIsNone) {
  const TestDir dir;
  const MemoryLimitPaths paths{
      .self_cgroup = dir.File("self"), .cgroup_root = dir.File("cgroup"), .meminfo = dir.File("meminfo")};
  EXPECT_EQ(MainMemory(paths), 0u);
  ASSERT_TRUE(WriteFileAtomically(paths.meminfo, "MemTotal:        8388608 kB\n").ok());
  EXPECT_EQ(MainMemory(paths), uint64_t{8} << 30);
  ASSERT_TRUE(CreateDirs(dir.File("cgroup/system.slice/worker.service")).ok());
  ASSERT_TRUE(WriteFileAtomically(paths.self_cgroup, "0::/system.slice/worker.service\n").ok());
  ASSERT_TRUE(
      WriteFileAtomically(dir.File("cgroup/system.slice/worker.service/memory.max"), "536870912\n").ok());
  EXPECT_EQ(MainMemory(paths), uint64_t{512} << 20) << "as systemd's MemoryMax sets it, below the root";
}

TEST(HardwareTest, ThisMachine) {
  const Hardware hardware = HardwareOf("cpu");
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  if (!ProcessorIn(text.str()).empty()) {
    EXPECT_EQ(hardware.name, ProcessorIn(text.str()));
  }
  EXPECT_FALSE(hardware.name.empty());
  EXPECT_EQ(hardware.name.find("LibTorch"), std::string::npos);
  EXPECT_GE(hardware.default_threads, 1);
  EXPECT_GT(hardware.memory_bytes, uint64_t{1} << 28);
  EXPECT_LE(hardware.memory_bytes, static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(hardware.device_memory_bytes, 0u);
}

TEST(HardwareTest, AnAcceleratorHasANameAndMemoryOfItsOwn) {
  const Hardware hardware = HardwareOf("cuda:0");
  if (hardware.device_memory_bytes == 0) {
    EXPECT_EQ(hardware.name, "cuda:0") << "no driver, no name";
    GTEST_SKIP() << "needs a GPU";
  }
  EXPECT_NE(hardware.name, "cuda:0");
  EXPECT_NE(hardware.name, HardwareOf("cpu").name);
}

}  // namespace
}  // namespace atl
