#include "worker/torch/gradient_exchange.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/worker/torch/rank_threads.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/rank_collectives.h"
#include "worker/torch/rank_group.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using testing::TinyDataset;
using testing::TinyReplica;
using testing::WithRanks;

// A model may use a tensor for some data only, so that one rank sees its gradient and the other does not.
TEST(GradientExchangeTest, ATensorThatOneRankUsesIsUsedByAll) {
  const TorchReplicaOptions tiny = TinyReplica(TinyDataset("ranks_seen"));
  const Manifest manifest = (*CreateTorchReplica(tiny))->manifest();
  WithRanks(2, [&](RankGroup& group) {
    FlatParameters parameters = FlatParameters::Create(manifest, torch::kCPU).value();
    parameters.ExpectNoGradient(0);
    parameters.ExpectNoGradient(1);
    GradientExchange exchange(parameters, group.collectives(), GradientOverlap::kNo);
    // Rank 0 sees both at once, rank 1 one in the second step.
    for (int step = 0; step < 3; ++step) {
      if (group.rank() == 0) parameters.SawGradient(0);
      if (group.rank() == 0) parameters.SawGradient(1);
      if (group.rank() == 1 && step == 1) parameters.SawGradient(0);
      exchange.ShareSeenGradients();
      EXPECT_EQ(parameters.tensors_without_gradient(), 0u) << group.rank();
      std::vector<double> sum = {1};
      group.collectives().Sum(sum);
      EXPECT_EQ(sum[0], 2) << "the ranks are in step " << step;
    }
  });
}

}  // namespace
}  // namespace atl
