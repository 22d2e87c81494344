#include "common/trace_context.h"

#include <sstream>
#include <thread>

#include "common/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExample[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ReadsTheSpecificationsExampleAndWritesItAgain) {
  const auto trace = ParseTraceparent(kExample);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace->span_id, "00f067aa0ba902b7");
  EXPECT_EQ(trace->flags, 1);
  EXPECT_EQ(FormatTraceparent(*trace), kExample);
}

TEST(TraceContextTest, WhatIsNotValidIsNone) {
  for (const char* text : {
           "", "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",     // too short
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",   // too long
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-a",  // version 00 ends here
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",    // upper case
           "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",    // no digit
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0\n",   // would begin a line of its own
           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",    // no dash
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",    // no trace
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",    // no span
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",    // forbidden version
           "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",   // no dash before what is new
       }) {
    EXPECT_FALSE(ParseTraceparent(text).has_value()) << text;
  }
  std::string with_zero = kExample;
  with_zero[10] = '\0';
  EXPECT_FALSE(ParseTraceparent(with_zero).has_value());
}

TEST(TraceContextTest, OfALaterVersionTheKnownPartIsRead) {
  EXPECT_TRUE(ParseTraceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").has_value());
  const auto trace = ParseTraceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more");
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(FormatTraceparent(*trace), kExample) << "what we send on is of the version that we know";
}

TEST(TraceContextTest, NewOnesAreValidAndDiffer) {
  const TraceContext a = NewTrace();
  const TraceContext b = NewTrace();
  EXPECT_EQ(ParseTraceparent(FormatTraceparent(a)), a);
  EXPECT_NE(a.trace_id, b.trace_id);
  const TraceContext next = NextSpan(a);
  EXPECT_EQ(next.trace_id, a.trace_id);
  EXPECT_NE(next.span_id, a.span_id);
}

TEST(TraceContextTest, ScopesNestAndBelongToTheirThread) {
  EXPECT_EQ(CurrentTrace(), nullptr);
  {
    const ScopedTrace outer(NewTrace());
    EXPECT_EQ(CurrentTraceId(), outer.trace().trace_id);
    {
      const ScopedTrace inner(NewTrace());
      EXPECT_EQ(CurrentTraceId(), inner.trace().trace_id);
    }
    EXPECT_EQ(CurrentTraceId(), outer.trace().trace_id);
    std::thread([] { EXPECT_EQ(CurrentTrace(), nullptr); }).join();
  }
  EXPECT_EQ(CurrentTraceId(), "");
}

TEST(TraceContextTest, LogLinesWithinAScopeNameIt) {
  std::ostringstream out;
  LogOptions options;
  options.format = LogFormat::kJson;
  options.stream = &out;
  const Logger log = Logger::Create(options).value();
  log.Info("before", {{"a", 1}});
  EXPECT_THAT(out.str(), Not(HasSubstr("trace_id")));
  const ScopedTrace scope(ParseTraceparent(kExample).value());
  log.Info("within", {{"a", 1}});
  EXPECT_THAT(out.str(), HasSubstr("\"a\":1,\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\""));
}

}  // namespace
}  // namespace atl
