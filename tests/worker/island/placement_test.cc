#include "worker/island/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace atl {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment Of(const Variables& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

Variables Torchrun() {
  return {{"RANK", "3"},         {"WORLD_SIZE", "4"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "h0"}, {"MASTER_PORT", "29500"}};
}

std::string Refusal(const IslandFlags& flags, const Variables& variables = {}) {
  const auto role = FindIslandRole(flags, Of(variables));
  EXPECT_TRUE(absl::IsInvalidArgument(role.status())) << role.status();
  return std::string(role.status().message());
}

TEST(PlacementTest, AWorkerAloneIsNoRank) {
  for (const IslandFlags& flags : {IslandFlags{}, IslandFlags{.ranks = 1}}) {
    const auto role = FindIslandRole(flags, Of({}));
    ASSERT_TRUE(role.ok());
    EXPECT_FALSE(role->supervises);
    EXPECT_FALSE(role->place.has_value());
  }
}

TEST(PlacementTest, RanksOnOneHostAreSupervised) {
  const auto role = FindIslandRole({.ranks = 2}, Of({}));
  ASSERT_TRUE(role.ok());
  EXPECT_TRUE(role->supervises);
}

TEST(PlacementTest, ASupervisedProcessIsARankAlthoughItHasTheOption) {
  const Variables variables = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {kSupervisedVariable, "/tmp/f/store"}};
  const auto role = FindIslandRole({.ranks = 4}, Of(variables));
  ASSERT_TRUE(role.ok()) << role.status();
  EXPECT_FALSE(role->supervises);
  EXPECT_TRUE(role->place->supervised);
  EXPECT_EQ(role->place->rank, 1u);
  EXPECT_EQ(role->place->store_file, "/tmp/f/store");
  EXPECT_FALSE(role->place->hosts_store);
}

TEST(PlacementTest, TorchrunsVariables) {
  const auto role = FindIslandRole({}, Of(Torchrun()));
  ASSERT_TRUE(role.ok()) << role.status();
  const IslandPlace& place = *role->place;
  EXPECT_EQ(place.rank, 3u);
  EXPECT_EQ(place.size, 4u);
  EXPECT_EQ(place.local_rank, 1u);
  EXPECT_EQ(place.local_size, 2u);
  EXPECT_EQ(place.store_host, "h0");
  EXPECT_EQ(place.store_port, 29500);
  EXPECT_FALSE(place.hosts_store);
  EXPECT_FALSE(place.supervised);
}

TEST(PlacementTest, RankZeroHostsTheStoreUnlessTheAgentDoes) {
  Variables variables = Torchrun();
  variables["RANK"] = "0";
  EXPECT_TRUE(FindIslandRole({}, Of(variables))->place->hosts_store);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_FALSE(FindIslandRole({}, Of(variables))->place->hosts_store);
}

TEST(PlacementTest, OptionsNameTheAddress) {
  const auto role = FindIslandRole({.island = "h0:4000", .rank = 1, .world_size = 2}, Of({}));
  ASSERT_TRUE(role.ok()) << role.status();
  EXPECT_EQ(role->place->store_host, "h0");
  EXPECT_EQ(role->place->store_port, 4000);
  EXPECT_EQ(role->place->rank, 1u);
  EXPECT_FALSE(role->place->hosts_store);
}

TEST(PlacementTest, ContradictionsAreRefused) {
  EXPECT_THAT(Refusal({.island = "h0:4000"}), HasSubstr("--world-size"));
  EXPECT_THAT(Refusal({.island = "h0:4000", .rank = 2, .world_size = 2}), HasSubstr("0 to 1"));
  EXPECT_THAT(Refusal({.island = "h0:0", .rank = 0, .world_size = 2}), HasSubstr("port is 0"));
  EXPECT_THAT(Refusal({.island = "127.0.0.1", .rank = 0, .world_size = 2}),
              HasSubstr("--island 127.0.0.1: give rank 0's host and a port"));
  EXPECT_THAT(Refusal({.rank = 0}), HasSubstr("--island HOST:PORT"));
  EXPECT_THAT(Refusal({.ranks = 2, .island = "h0:4000"}), HasSubstr("give one of them"));
  EXPECT_THAT(Refusal({.ranks = 2}, Torchrun()), HasSubstr("torchrun"));
  EXPECT_THAT(Refusal({}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("MASTER_ADDR, MASTER_PORT are missing"));
  Variables variables = Torchrun();
  variables["MASTER_PORT"] = "70000";
  EXPECT_THAT(Refusal({}, variables), HasSubstr("1 to 65535"));
  variables["MASTER_PORT"] = "many";
  EXPECT_THAT(Refusal({}, variables), HasSubstr("'many'"));
}

TEST(PlacementTest, EachRankHasADeviceOfItsOwn) {
  const IslandPlace place{.rank = 3, .size = 4, .local_rank = 1, .local_size = 2};
  EXPECT_EQ(*DeviceOfRank("cpu", place, 8), "cpu");
  EXPECT_EQ(*DeviceOfRank("auto", place, 0), "cpu");
  EXPECT_EQ(*DeviceOfRank("auto", place, 2), "cuda:1");
  EXPECT_EQ(*DeviceOfRank("cuda", place, 2), "cuda:1");
  EXPECT_THAT(std::string(DeviceOfRank("cuda", place, 1).status().message()),
              HasSubstr("sees 1 CUDA device"));
  EXPECT_THAT(std::string(DeviceOfRank("cuda:0", place, 2).status().message()), HasSubstr("give cuda"));
}

TEST(PlacementTest, ThreadsAreSharedOut) {
  const IslandPlace place{.rank = 0, .size = 4, .local_size = 4};
  EXPECT_EQ(ThreadsOfRank(8, 2, place), 2);
  EXPECT_EQ(ThreadsOfRank(0, 6, place), 1);
  EXPECT_EQ(ThreadsOfRank(0, 2, place), 1);
}

}  // namespace
}  // namespace atl
