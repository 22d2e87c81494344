#include "monitoring/endpoint.h"

#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/http_get.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MetricsEndpointTest, AnswersScrapesOverHttp) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("atoll_things_total", "Things.");
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const uint16_t port = (*endpoint)->address().port;
  ASSERT_NE(port, 0);
  counter.Increment(3);
  EXPECT_THAT(HttpGet(port, "/metrics"), AllOf(HasSubstr("200 OK"), HasSubstr("atoll_things_total 3\n")));
  counter.Increment(1);
  EXPECT_THAT(HttpGet(port, "/metrics"), HasSubstr("atoll_things_total 4\n"))
      << "nothing is answered from before";
  EXPECT_THAT(HttpGet(port, "/"), HasSubstr("404"));
}

TEST(MetricsEndpointTest, SaysThatItLivesAndNothingElse) {
  MetricsRegistry registry;
  registry.BeforeScrape([] { FAIL() << "a probe collects nothing"; });
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const uint16_t port = (*endpoint)->address().port;
  EXPECT_THAT(HttpGet(port, "/healthz"), AllOf(HasSubstr("200 OK"), HasSubstr("ok\n")));
  EXPECT_THAT(HttpGet(port, "/metrics/"), HasSubstr("404"));
}

TEST(MetricsEndpointTest, AProbeDoesNotWaitForAScrape) {
  MetricsRegistry registry;
  std::latch begun(1);
  std::latch go_on(1);
  registry.BeforeScrape([&] {
    begun.count_down();
    go_on.wait();
  });
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const uint16_t port = (*endpoint)->address().port;
  std::string scraped;
  std::thread scrape([&] { scraped = HttpGet(port, "/metrics"); });
  begun.wait();
  EXPECT_THAT(HttpGet(port, "/healthz"), HasSubstr("200 OK"));
  go_on.count_down();
  scrape.join();
  EXPECT_THAT(scraped, HasSubstr("200 OK"));
}

TEST(MetricsEndpointTest, SilentClientsKeepNobodyOut) {
  MetricsRegistry registry;
  MetricsEndpointOptions options{.address = "127.0.0.1:0"};
  options.limits.connections = 12;
  options.limits.crowded = 8;
  const auto endpoint = MetricsEndpoint::Start(options, registry);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const uint16_t port = (*endpoint)->address().port;
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(ConnectTo(port));
    ASSERT_TRUE(silent.back().valid());
    if (i % 4 != 3) continue;
    EXPECT_THAT(HttpGet(port, "/metrics"), HasSubstr("200 OK")) << i;
  }
}

TEST(MetricsEndpointTest, APortInUseIsNamed) {
  MetricsRegistry registry;
  const auto first = MetricsEndpoint::Start("localhost:0", registry);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsEndpoint::Start((*first)->address().ToString(), registry);
  ASSERT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address().ToString()));
}

TEST(MetricsEndpointTest, ABadAddressIsRejected) {
  MetricsRegistry registry;
  EXPECT_TRUE(absl::IsInvalidArgument(MetricsEndpoint::Start("7602", registry).status()));
}

TEST(MetricsEndpointTest, StopsListeningWhenDestroyedAndAtOnce) {
  MetricsRegistry registry;
  auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(endpoint.ok());
  const uint16_t port = (*endpoint)->address().port;
  const auto begun = std::chrono::steady_clock::now();
  endpoint->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));  // left alone: up to two
  EXPECT_EQ(HttpGet(port, "/metrics"), "");
}

}  // namespace
}  // namespace atl
