#include "tests/worker/torch/rank_threads.h"

#include <gtest/gtest.h>

#include <span>
#include <thread>
#include <vector>

#include "tests/worker/torch/free_port.h"

namespace atl::testing {

void WithRanks(uint32_t size, const std::function<void(RankGroup&)>& body) {
  const uint16_t port = FreePort();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto store = RankStore::Open({.host = "127.0.0.1",
                                          .port = port,
                                          .hosts_store = rank == 0,
                                          .prefix = "t",
                                          .timeout = Seconds(30)});
      ASSERT_TRUE(store.ok()) << store.status();
      const auto group = RankGroup::Create(
          *store,
          {.rank = rank, .size = size, .address = "127.0.0.1", .timeout = Seconds(30), .on_broken = {}});
      ASSERT_TRUE(group.ok()) << group.status();
      body(**group);
      // The store must outlive the other ranks' last calls.
      double done = 1;
      ASSERT_TRUE((*group)->BroadcastFromFirst(std::span(reinterpret_cast<float*>(&done), 1)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace atl::testing
