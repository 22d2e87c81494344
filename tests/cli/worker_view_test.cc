#include "cli/worker_view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DescribeWorker, NamesItsHardware) {
  v1::WorkerStatus worker;
  v1::Capabilities& capabilities = *worker.mutable_capabilities();
  capabilities.set_device("cuda:0");
  capabilities.set_device_name("NVIDIA H100 80GB HBM3");
  capabilities.set_device_memory_bytes(uint64_t{80} << 30);
  capabilities.set_threads(8);
  capabilities.set_memory_bytes(uint64_t{256} << 30);
  EXPECT_THAT(DescribeWorker(worker),
              Contains(HasSubstr(
                  "cuda:0 NVIDIA H100 80GB HBM3, 80.0 GiB of its own, 8 threads, 256 GiB of main memory")));
  capabilities.clear_device_memory_bytes();
  capabilities.clear_memory_bytes();
  EXPECT_THAT(DescribeWorker(worker), Contains(HasSubstr("cuda:0 NVIDIA H100 80GB HBM3, 8 threads")))
      << "of a worker that is older than these fields";
  capabilities.set_threads(1);
  EXPECT_THAT(DescribeWorker(worker), Contains(HasSubstr("H100 80GB HBM3, 1 thread")));
  EXPECT_THAT(DescribeWorker(worker), Not(Contains(HasSubstr("1 threads"))));
  capabilities.set_device("cpu");
  capabilities.clear_device_name();
  EXPECT_THAT(DescribeWorker(worker), Contains(HasSubstr("cpu, 1 thread"))) << "of a worker in Python";
}

TEST(DescribeWorker, AWorkerMayReportNoDevice) {
  EXPECT_THAT(DescribeWorker(v1::WorkerStatus()),
              Contains(HasSubstr("device               not reported since the coordinator started")));
}

}  // namespace
}  // namespace atl
