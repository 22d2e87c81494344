#include "common/printable.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(PrintableTest, LeavesOutWhatControlsATerminalOrTheDirectionOfText) {
  EXPECT_EQ(Printable("a\x1b[2Jb\r\n\tc\x7f"), "a[2Jbc");
  EXPECT_EQ(Printable("H100 \u202Eevil\u202C \u2066x\u2069\u200F\uFEFF"), "H100 evil x");
  EXPECT_EQ(Printable("\u009b31m\u0085\u2028\u061C\uFFF9\U000E0041|"), "31m|");
}

TEST(PrintableTest, KeepsText) {
  for (const char* text :
       {"", "NVIDIA H100 80GB HBM3", "Tesla® µ-GPU ½", "显卡", "😀", "\xff\xc3", "\xe2\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

}  // namespace
}  // namespace atl
