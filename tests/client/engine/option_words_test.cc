#include "client/engine/option_words.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(OptionWords, FlagsBecomeOptions) {
  EXPECT_EQ(WithOptionWords("trying again will hardly help; give --wait-forever to keep trying"),
            "trying again will hardly help; give option wait-forever to keep trying");
  EXPECT_EQ(WithOptionWords("give --tls-cert and --tls-key, or --token-file FILE (ATOLL_TOKEN_FILE)"),
            "give option tls-cert and option tls-key, or option token-file FILE (ATOLL_TOKEN_FILE)");
  EXPECT_EQ(
      WithOptionWords("Use another --state-dir for this run, or another --coordinator; give --expect-run r"),
      "Use another state-dir for this run, or another coordinator; give option expect-run r");
  EXPECT_EQ(WithOptionWords("always start it with the same --name"), "always start it with the same name");
  EXPECT_EQ(WithOptionWords("give both of one worker (--tls-cert, --token-file)"),
            "give both of one worker (option tls-cert, option token-file)");
  EXPECT_EQ(WithOptionWords("--token-file: open x"), "option token-file: open x");
}

TEST(OptionWords, FlagsOfOtherProgramsStay) {
  for (const char* const same :
       {"it must be signed by a CA in the coordinator's --tls-ca", "needs a token (atollctl --tls-cert)",
        "call `atoll-worker --name w0`", "--launch-workers 3", "a--name", "--", "", "one -- two"}) {
    EXPECT_EQ(WithOptionWords(same), same);
  }
}

}  // namespace
}  // namespace atl
