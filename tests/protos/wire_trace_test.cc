#include <string>

#include "gtest/gtest.h"
#include "protos/wire/trace.h"

namespace atl {
namespace {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

constexpr char kValid[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kOther[] = "00-11111111111111111111111111111111-00f067aa0ba902b7-01";

TEST(WireTraceTest, AValidTraceIsTakenUp) {
  EXPECT_EQ(ReceivedTrace(Metadata{{"traceparent", kValid}, {"atoll-user", "ann"}}).trace_id,
            "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(WireTraceTest, AnythingElseBeginsANewOne) {
  const std::string huge(100000, 'a');
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"traceparent", "nonsense"}}, Metadata{{"traceparent", huge}},
        Metadata{{"traceparent", kValid}, {"traceparent", kOther}}, Metadata{{"tracestate", kValid}}}) {
    const TraceContext trace = ReceivedTrace(metadata);
    EXPECT_TRUE(ParseTraceparent(FormatTraceparent(trace)).has_value());
    EXPECT_NE(trace.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  }
}

}  // namespace
}  // namespace atl
