#include "common/command_line/parse.h"

#include "absl/strings/str_cat.h"
#include "common/command_line/help.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    app_.add_option("--admin", text_, "Address of the admin port");
    app_.add_flag("--json", flag_, "Print JSON");
    app_.require_subcommand(1);
    app_.fallthrough();
    CLI::App* workers = app_.add_subcommand("workers", "List, drain and add workers");
    CLI::App* drain = workers->add_subcommand("drain", "Let the worker finish its round");
    drain->add_option("NAME", text_, "Name of the worker");
    SetHelp(*drain, {.examples = {{"ctl workers drain w3", "Before maintenance"}},
                     .exit_codes = {ExitCode::kRejected}});
    SetHelp(app_, {.examples = {{"ctl workers"}}});
  }

  std::string Unknown(const std::vector<std::string>& arguments) { return UnknownWord(app_, arguments); }

  CLI::App app_{"Inspect a run", "ctl"};
  std::string text_;
  bool flag_ = false;
};

TEST_F(CommandLineTest, NamesTheWordThatWasMeant) {
  EXPECT_EQ(Unknown({"wrokers"}), "unknown command 'wrokers'; did you mean 'workers'?");
  EXPECT_EQ(Unknown({"workers", "drian", "w3"}), "unknown command 'drian'; did you mean 'drain'?");
  EXPECT_EQ(Unknown({"workers", "--jsn"}), "unknown option '--jsn'; did you mean '--json'?");
  EXPECT_EQ(Unknown({"zebra"}), "unknown command 'zebra'");
}

TEST_F(CommandLineTest, TakesNoValueForACommand) {
  EXPECT_EQ(Unknown({"--admin", "zebra", "workers", "drain", "zebra"}), "");
  EXPECT_EQ(Unknown({"--admin=zebra", "--json", "workers", "drain", "--", "--zebra"}), "");
  EXPECT_EQ(Unknown({"--json", "zebra"}), "unknown command 'zebra'") << "a flag takes no value";
}

TEST_F(CommandLineTest, ACommandShowsItsOwnExamplesAndExitCodes) {
  UseHelpLayout(app_);
  const std::string help = app_.get_subcommand("workers")->get_subcommand("drain")->help("ctl workers");
  EXPECT_THAT(help, HasSubstr("Example:\n  # Before maintenance\n  ctl workers drain w3\n"));
  EXPECT_THAT(help, HasSubstr("'ctl --help' lists the options of every command."));
  EXPECT_THAT(help, HasSubstr("    5  refused by the coordinator"));
  EXPECT_THAT(help, Not(HasSubstr("numerics")));
  EXPECT_THAT(app_.help(), HasSubstr("    7  numerics"));
}

TEST(ParseCommandLineTest, TakesOnlyFiniteNumbers) {
  for (const bool of_command : {false, true}) {
    for (const std::string number : {"nan", "NaN", "-nan", "inf", "-inf", "infinity", "1e999", "2.5"}) {
      CLI::App app{"Inspect a run", "ctl"};
      double seconds = 0;
      CLI::App* owner = of_command ? app.add_subcommand("workers", "")->add_subcommand("drain", "") : &app;
      owner->add_option("--seconds", seconds, "")->check(CLI::Range(0.0, 1e9));
      double other = 0;
      owner->add_option("--other", other, "");
      for (const char* const option : {"--seconds", "--other"}) {
        std::vector<const char*> words = {"ctl"};
        if (of_command) words.insert(words.end(), {"workers", "drain"});
        const std::string given = absl::StrCat(option, "=", number);
        words.push_back(given.c_str());
        const auto code = ParseCommandLine(app, static_cast<int>(words.size()), words.data());
        EXPECT_EQ(code.value_or(ExitCode::kOk), number == "2.5" ? ExitCode::kOk : ExitCode::kUsage) << given;
      }
    }
  }
}

TEST(WrapTextTest, BreaksAtSpaces) {
  EXPECT_THAT(WrapText("one two  three\nfour", 9), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(WrapText("a much-longer-word b", 6), ElementsAre("a", "much-longer-word", "b"));
  EXPECT_THAT(WrapText("", 9), IsEmpty());
}

}  // namespace
}  // namespace atl
