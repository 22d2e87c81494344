#include "core/confirmation.h"

#include "gtest/gtest.h"

namespace atoll {
namespace {

// Frozen: a coordinator and a worker of different builds must sign the same bytes.
TEST(ConfirmationTest, TheTextIsThatOfTheProtocol) {
  const Confirmation confirmation{.fragment = FragmentId(2),
                                  .version = Version(17),
                                  .published = {.low = 18446744073709551615U, .high = 3}};
  EXPECT_EQ(
      ConfirmationText({.run_id = "0123456789abcdef", .epoch = Epoch(9), .worker = "w-1"}, confirmation),
      "atoll-confirmation/1\n0123456789abcdef\n9\nw-1\n2\n17\n18446744073709551615\n3\n");
}

}  // namespace
}  // namespace atoll
