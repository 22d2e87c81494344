#include "cli/text.h"

#include <sstream>

#include "cli/confirm.h"
#include "cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

TEST(RenderTable, ColumnsAsWideAsTheyMustBe) {
  EXPECT_THAT(
      RenderTable({{"name"}, {"n", Align::kRight}, {"what"}}, {{"ä", "7"}, {"longer", "123", "x\x1b[2J"}}),
      ElementsAre(" name      n  what", " ä         7", " longer  123  x[2J"));
}

TEST(Columns, TextIsCutAndWrappedByWhatIsSeenOfIt) {
  EXPECT_EQ(CutToColumns("\x1b[1mäbc\x1b[0mdef", 4), "\x1b[1mäbc\x1b[0md\x1b[0m");
  EXPECT_EQ(CutToColumns("abc", 3), "abc");
  EXPECT_THAT(WrapToColumns(" one two  three", 9), ElementsAre(" one two", "   three"));
  EXPECT_THAT(WrapToColumns(" computing 84 %, 1.2 MiB/s", 14),
              ElementsAre(" computing", "   84 %,", "   1.2 MiB/s"));
  EXPECT_THAT(WrapToColumns(" immeasurable", 5), ElementsAre(" imme"));
  EXPECT_THAT(WrapToColumns("", 5), ElementsAre(""));
}

TEST(Names, OfStatesAndCommands) {
  EXPECT_STREQ(StateName(v1::RUN_STATE_PAUSED), "paused");
  EXPECT_STREQ(StateName(v1::RUN_STATE_STOPPED), "stopped");
  EXPECT_EQ(CommandName(v1::COMMAND_RESYNC), "resync");
  EXPECT_EQ(CommandName(v1::COMMAND_NONE), "");
  EXPECT_EQ(CommandName(v1::COMMAND_UNSPECIFIED), "");
}

TEST(Names, OfEvents) {
  EXPECT_EQ(EventKindName(v1::RunEvent::WORKER_LEFT), "WORKER_LEFT");
  EXPECT_EQ(EventKindName(v1::RunEvent::KIND_UNSPECIFIED), "OTHER");
  EXPECT_EQ(EventKindName(static_cast<v1::RunEvent::Kind>(999)), "OTHER");
}

TEST(WaitsText, SaysWaitingOnce) {
  EXPECT_EQ(WaitsText("waiting for worker 'w1' to seed the parameters"),
            "waits for worker 'w1' to seed the parameters");
  EXPECT_EQ(WaitsText("paused by ann"), "waits: paused by ann");
}

absl::Status Ask(const std::string& answer, std::string* asked) {
  std::istringstream in(answer);
  std::ostringstream out;
  const absl::Status status = ConfirmOn(in, out, /*interactive=*/true, "Delete it?", /*yes=*/false);
  *asked = out.str();
  return status;
}

TEST(Confirm, OnlyYesIsYes) {
  std::string asked;
  EXPECT_TRUE(Ask("y\n", &asked).ok());
  EXPECT_EQ(asked, "Delete it? [y/N] ");
  EXPECT_TRUE(Ask("YES\n", &asked).ok());
  for (const char* answer : {"\n", "", "n\n", "yep\n"}) {
    EXPECT_EQ(CommandExitCode(Ask(answer, &asked)), ExitCode::kInterrupted) << answer;
  }
}

TEST(CommandExitCode, TellsTheCoordinatorsAnswersApart) {
  EXPECT_EQ(CommandExitCode(absl::NotFoundError("run.yaml")), ExitCode::kBadFiles);
  EXPECT_EQ(CommandExitCode(FromCoordinator(absl::NotFoundError("w3"))), ExitCode::kRejected);
  EXPECT_EQ(CommandExitCode(FromCoordinator(absl::UnimplementedError("old"))), ExitCode::kRejected);
  EXPECT_EQ(CommandExitCode(FromCoordinator(absl::DataLossError("x"))), ExitCode::kStorage);
  EXPECT_EQ(CommandExitCode(WithExitCode(absl::NotFoundError("x"), ExitCode::kInternal)),
            ExitCode::kInternal);
}

}  // namespace
}  // namespace atl
