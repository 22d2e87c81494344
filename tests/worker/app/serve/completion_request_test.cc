#include "worker/app/serve/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/app/serve/token_text.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ByteTokenizer kBytes;
const CompletionBounds kBounds = {.context = 16, .vocabulary = 256, .tokenizer = &kBytes};

TEST(CompletionRequestTest, HasTheDefaultsOfTheApi) {
  const auto request = ParseCompletionRequest(R"({"prompt": "ab", "max_tokens": 3})", kBounds);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->prompts, ElementsAre(ElementsAre('a', 'b')));
  EXPECT_EQ(request->temperature, 1);
  EXPECT_EQ(request->top_p, 1);
  EXPECT_FALSE(request->seed.has_value());
  EXPECT_FALSE(request->echo);
  EXPECT_FALSE(request->logprobs.has_value());
  EXPECT_THAT(request->stop, ElementsAre());
}

TEST(CompletionRequestTest, TakesPromptsInEveryForm) {
  const std::string end = R"(, "max_tokens": 2, "n": 1, "stream": false, "logit_bias": {}, "stop": null})";
  for (const auto& [prompt, count] : std::vector<std::tuple<std::string, size_t>>{
           {R"("ab")", 1}, {R"(["ab", "c"])", 2}, {"[97, 98]", 1}, {"[[97, 98], [99]]", 2}}) {
    const auto request = ParseCompletionRequest(absl::StrCat(R"({"prompt": )", prompt, end), kBounds);
    ASSERT_TRUE(request.ok()) << prompt << ": " << request.status();
    ASSERT_EQ(request->prompts.size(), count);
    EXPECT_THAT(request->prompts[0], ElementsAre('a', 'b'));
    if (count > 1) {
      EXPECT_THAT(request->prompts[1], ElementsAre('c'));
    }
  }
}

TEST(CompletionRequestTest, AnEmptyPromptIsTheTokenThatBeginsATextIfThereIsOne) {
  EXPECT_THAT(
      std::string(ParseCompletionRequest(R"({"prompt": "", "max_tokens": 1})", kBounds).status().message()),
      HasSubstr("'prompt' is empty"));
  CompletionBounds bounds = kBounds;
  bounds.begin = 7;
  const auto request = ParseCompletionRequest(R"({"prompt": "", "max_tokens": 1})", bounds);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->prompts, ElementsAre(ElementsAre(7)));
}

TEST(CompletionRequestTest, TheLastTokenNeedsNoPlace) {
  const std::string sixteen = R"({"prompt": "0123456789abcdef", "max_tokens": )";
  EXPECT_TRUE(ParseCompletionRequest(sixteen + "1}", kBounds).ok());
  EXPECT_FALSE(ParseCompletionRequest(sixteen + "2}", kBounds).ok());
  // To score only, one more.
  EXPECT_TRUE(ParseCompletionRequest(R"({"prompt": "0123456789abcdefg", "max_tokens": 0})", kBounds).ok());
  EXPECT_FALSE(ParseCompletionRequest(R"({"prompt": "0123456789abcdefg", "max_tokens": 1})", kBounds).ok());
}

TEST(CompletionRequestTest, NamesTheFieldThatIsWrong) {
  for (const auto& [fields, field, what] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {R"("prompt": 3)", "prompt", "must be a text"},
           {R"("prompt": [])", "prompt", "must be a text"},
           {R"("prompt": [1, "a"])", "prompt", "not a token number"},
           {R"("prompt": [256])", "prompt", "holds token 256, and the vocabulary of the model is 256"},
           {R"("prompt": [-1])", "prompt", "not a token number"},
           {R"("prompt": "a", "max_tokens": 17)", "max_tokens", "from 0 to 16"},
           {R"("prompt": "a", "max_tokens": 1.5)", "max_tokens", "whole number"},
           {R"("prompt": "a", "temperature": -1)", "temperature", "from 0 to 100"},
           {R"("prompt": "a", "top_p": 1.1)", "top_p", "from 0 to 1"},
           {R"("prompt": "a", "logprobs": 21)", "logprobs", "from 0 to 20"},
           {R"("prompt": "a", "stop": [1])", "stop", "a text or a list of texts"},
           {R"("prompt": "a", "echo": 1)", "echo", "true or false"},
           {R"("prompt": "a", "seed": "x")", "seed", "whole number"},
           {R"("prompt": "a", "stream": true)", "stream", "must be false"},
           {R"("prompt": "a", "n": 2)", "n", "must be 1"},
           {R"("prompt": "a", "mirostat": 2)", "mirostat", "is not a field that this server knows"},
           {R"("max_tokens": 1)", "prompt", "is missing"}}) {
    SCOPED_TRACE(fields);
    const auto status = ParseCompletionRequest("{" + fields + "}", kBounds).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(FieldOf(status), field);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
  for (const char* const body :
       {"", "[]", "{\"prompt\": \"a\"", "{\"prompt\": \"\xff\"}", "{\"prompt\":[[[[1]]]]}"}) {
    const auto status = ParseCompletionRequest(body, kBounds).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << body;
  }
}

TEST(CompletionRequestTest, BoundsTheWorkOfARequest) {
  std::string many = R"({"max_tokens": 1, "prompt": ["a")";
  for (size_t i = 1; i < kMostPrompts + 1; ++i) many += ", \"a\"";
  EXPECT_THAT(std::string(ParseCompletionRequest(many + "]}", kBounds).status().message()),
              HasSubstr("a request has at most 128"));
}

TEST(CompletionRequestTest, WithoutATokenizerTakesNumbersOnly) {
  CompletionBounds bounds = kBounds;
  bounds.tokenizer = nullptr;
  EXPECT_TRUE(ParseCompletionRequest(R"({"prompt": [1, 2], "max_tokens": 1})", bounds).ok());
  EXPECT_THAT(std::string(ParseCompletionRequest(R"({"prompt": "a"})", bounds).status().message()),
              HasSubstr("has no tokenizer"));
  EXPECT_THAT(std::string(ParseCompletionRequest(R"({"prompt": [1], "max_tokens": 1, "stop": "a"})", bounds)
                              .status()
                              .message()),
              HasSubstr("'stop' is a text"));
}

TEST(TokenTextTest, ShowsEveryToken) {
  EXPECT_EQ(TokenText(&kBytes, 'a'), "a");
  EXPECT_EQ(TokenText(&kBytes, 0xE2), "bytes:\\xe2");
  EXPECT_EQ(TokenText(nullptr, 17), "token_id:17");
}

TEST(TokenTextTest, CountsCharactersWhereTheyBegin) {
  EXPECT_EQ(CharactersBegun("a\xE2\x82\xAC"), 2U);
  EXPECT_EQ(CharactersBegun("\x82\xAC"), 0U);
}

}  // namespace
}  // namespace atl
