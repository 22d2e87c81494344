#include "monitoring/endpoint.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/http_get.h"

namespace atoll {
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
  EXPECT_THAT(HttpGet(port, "/"), HasSubstr("404"));
}

TEST(MetricsEndpointTest, APortInUseIsNamed) {
  MetricsRegistry registry;
  const auto first = MetricsEndpoint::Start("localhost:0", registry);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsEndpoint::Start((*first)->address().ToString(), registry);
  ASSERT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address().ToString()));
}

TEST(MetricsEndpointTest, ABadAddressIsRefused) {
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
}  // namespace atoll
