#include "server/rpc/port_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// The ports of a coordinator with so much memory beside its run.
RpcServerOptions Limited(uint64_t memory, size_t connections) {
  RpcServerOptions options;
  LimitPorts(BoundsWithin(memory, CoordinatorMemory{}), connections, options);
  return options;
}

TEST(PortLimitsTest, MemoryBoundsConnectionsAndIsNamed) {
  const RpcServerOptions small = Limited(256 * kMiB, 4096);
  EXPECT_LT(small.connections.total, 4096u);
  EXPECT_LT(small.admin_connections.total, small.connections.total);
  const std::string why = WhyFewerConnections(4096, 4096, small);
  EXPECT_THAT(why, HasSubstr("the limit of memory leaves fewer connections than --max-connections 4096: " +
                             std::to_string(small.connections.total) + " to the data port, " +
                             std::to_string(small.admin_connections.total) + " to the admin port"));
}

TEST(PortLimitsTest, OpenFilesBoundConnectionsAndAreNamed) {
  const RpcServerOptions few = Limited(16384 * kMiB, 128);
  EXPECT_EQ(few.connections.total, 128u);
  EXPECT_THAT(WhyFewerConnections(4096, 128, few), HasSubstr("the limit of open files leaves"));
}

// The numbers of the help of --max-connections and of docs/reference/wire_format.md.
TEST(PortLimitsTest, HoweverMuchMemoryThereIsThePortsHaveALimit) {
  const RpcServerOptions options = Limited(uint64_t{1} << 40, 30000);
  EXPECT_EQ(options.connections.total, 6144u);
  EXPECT_EQ(options.admin_connections.total, 2048u);
  EXPECT_THAT(WhyFewerConnections(30000, 30000, options), HasSubstr("6144 to the data port, 2048"));
  EXPECT_THAT(WhyFewerConnections(4096, 4096, Limited(uint64_t{1} << 40, 4096)), IsEmpty());
}

TEST(PortLimitsTest, AnExternalModelCountsAsHalfOfTheMemoryUntilItIsKnown) {
  RunOptions run;
  run.workers = 2;
  run.inner.steps = 1;
  run.push_codec = CodecKind::kFp32;
  run.model = ModelOptions(ExternalOptions());
  const uint64_t limit = 8192 * kMiB;
  const auto run_bytes = [&](uint64_t parameters) {
    return FindMemoryBounds(limit / kMiB, run, parameters, Logger()).value().run;
  };
  const uint64_t small = run_bytes(1000);
  EXPECT_LT(small, 512 * kMiB);
  EXPECT_GT(run_bytes(0), limit / 4);
  EXPECT_LT(run_bytes(0), limit * 3 / 4);
  run.model.external()->parameters = 1000;
  EXPECT_EQ(run_bytes(0), small) << "what the configuration expects";
}

}  // namespace
}  // namespace atl
