// Files of questions: HellaSwag, MMLU and llm.c's, and what is said about wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "common/file.h"
#include "worker/app/eval/choice_file.h"
#include "worker/app/eval/csv.h"
#include "worker/app/eval/hellaswag.h"
#include "worker/app/eval/mmlu.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::string& name, const std::string& contents) {
  const std::string path = JoinPath(::testing::TempDir(), name);
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

template <typename Result>
std::string ErrorOf(const Result& result) {
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

TEST(HellaSwagTest, WritesAQuestionAsTheHarnessDoes) {
  const std::string path = Written(
      "hellaswag.jsonl",
      R"({"activity_label": "Baking", "ctx_a": "A cook [title] stirs. ", "ctx_b": "the OTHER cook", "label": "1",)"
      R"( "endings": ["runs [step] off.", " eats [substeps] it é. ", "[header]sits.", "sleeps  now."], "ind": 24})"
      "\n\n");
  const auto questions = ReadHellaSwag(path, 0);
  ASSERT_TRUE(questions.ok()) << questions.status();
  ASSERT_EQ(questions->size(), 1U);
  const ChoiceQuestion& question = questions->front();
  EXPECT_EQ(question.context, "Baking: A cook. stirs. The other cook");
  EXPECT_THAT(question.answers, ElementsAre(" runs off.", " eats it é.", " sits.", " sleeps now."));
  EXPECT_THAT(question.lengths, ElementsAre(9, 10, 5, 11));
  EXPECT_EQ(question.right, 1U);
}

TEST(HellaSwagTest, TakesBracketsOutAsAPythonPatternWould) {
  EXPECT_EQ(WithoutBrackets("a [b [c] d] e"), "a d] e");
  EXPECT_EQ(WithoutBrackets("a [b\nc] [d] e"), "a [b\nc] e");
  EXPECT_EQ(WithoutBrackets("open ["), "open [");
  EXPECT_EQ(WithoutBrackets("a    b"), "a  b");
  EXPECT_EQ(WithoutBrackets(" [] "), "");
}

TEST(HellaSwagTest, NamesFileAndLine) {
  const std::string good =
      R"({"activity_label": "a", "ctx_a": "b", "ctx_b": "c", "label": 0, "endings": ["d", "e"]})";
  EXPECT_THAT(ErrorOf(ReadHellaSwag(Written("h1", good + "\n{\"ind\": 3}\n"), 0)),
              HasSubstr("h1, line 2: \"activity_label\" is missing"));
  EXPECT_THAT(ErrorOf(ReadHellaSwag(Written("h2", "\n" + good + "\nnot json\n"), 0)),
              HasSubstr("h2, line 3: "));
  EXPECT_THAT(ErrorOf(ReadHellaSwag(Written("h3", "[]\n"), 0)), HasSubstr("line 1: is not a JSON object"));
  EXPECT_THAT(ErrorOf(ReadHellaSwag(Written("h4", "\n"), 0)), HasSubstr("holds no question"));
  EXPECT_TRUE(ReadHellaSwag(Written("h5", good + "\nnot json\n"), 1).ok()) << "it is not read";
  std::string label = good;
  label.replace(label.find("\"label\": 0"), 10, "\"label\": \"\"");
  EXPECT_THAT(ErrorOf(ReadHellaSwag(Written("h6", label), 0)),
              HasSubstr("\"label\" is \"\", which is none of the 2 answers"));
  EXPECT_TRUE(absl::IsNotFound(ReadHellaSwag("absent.jsonl", 0).status()));
}

TEST(CsvTest, ReadsQuotedFields) {
  const auto rows = ParseCsv("f", "a,\"b \"\"c\"\", d\",\r\n\r\n\"two\nlines\",x\nlast");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_THAT((*rows)[0].fields, ElementsAre("a", "b \"c\", d", ""));
  EXPECT_THAT((*rows)[1].fields, ElementsAre("two\nlines", "x"));
  EXPECT_EQ((*rows)[1].line, 3U);
  EXPECT_THAT((*rows)[2].fields, ElementsAre("last"));
  EXPECT_EQ((*rows)[2].line, 5U);
  EXPECT_THAT(ErrorOf(ParseCsv("f", "a\n\"b\nc")), HasSubstr("f, line 2: a field in quotes is not closed"));
  EXPECT_THAT(ErrorOf(ParseCsv("f", "\"b\" c")), HasSubstr("f, line 1: text follows"));
}

TEST(MmluTest, WritesQuestionsAsTheHarnessDoes) {
  const std::string path = Written("world_history_test.csv", "Why? ,w,x,y,z,C\n");
  const auto questions = ReadMmlu(path, 0);
  ASSERT_TRUE(questions.ok()) << questions.status();
  const std::vector<MmluQuestion> examples = {
      {.subject = "other", .question = "No", .answers = {"a", "b"}, .right = 0},
      {.subject = "world_history", .question = "When?", .answers = {"1", "2"}, .right = 1}};
  const auto letters = MmluChoices(*questions, examples, 1, MmluForm::kLetter);
  ASSERT_TRUE(letters.ok()) << letters.status();
  EXPECT_EQ(letters->front().context,
            "The following are multiple choice questions (with answers) about world history.\n\n"
            "When?\nA. 1\nB. 2\nAnswer: B\n\n"
            "Why?\nA. w\nB. x\nC. y\nD. z\nAnswer:");
  EXPECT_THAT(letters->front().answers, ElementsAre(" A", " B", " C", " D"));
  EXPECT_EQ(letters->front().right, 2U);
  const auto answers = MmluChoices(*questions, examples, 1, MmluForm::kAnswer);
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(answers->front().context,
            "The following are questions (with answers) about world history.\n\n"
            "Question: When?\nAnswer: 2\n\nQuestion: Why?\nAnswer:");
  EXPECT_THAT(answers->front().answers, ElementsAre(" w", " x", " y", " z"));
  EXPECT_THAT(ErrorOf(MmluChoices(*questions, examples, 2, MmluForm::kLetter)),
              HasSubstr("have 1 of the subject 'world_history'"));
}

TEST(MmluTest, ReadsJsonLinesAndFolders) {
  const std::string folder = JoinPath(::testing::TempDir(), "mmlu");
  ASSERT_TRUE(RemoveAll(folder).ok() && CreateDirs(folder).ok());
  Written("mmlu/a_test.csv", "q,w,x,y,z,A\nq2,w,x,y,z,B\n");
  Written("mmlu/b.jsonl", R"({"question": "q3", "choices": ["w", "x"], "answer": 1, "subject": "physics"})"
                          "\n"
                          R"({"question": "q4", "choices": ["w", "x"], "answer": "A"})");
  const auto all = ReadMmlu(folder, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ((*all)[1].subject, "a");
  EXPECT_EQ((*all)[2].subject, "physics");
  EXPECT_EQ((*all)[3].subject, "b");
  EXPECT_EQ((*all)[2].right, 1U);
  const auto first = ReadMmlu(folder, 1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->size(), 2U);
}

TEST(MmluTest, NamesFileAndLine) {
  EXPECT_THAT(
      ErrorOf(ReadMmlu(Written("m1.csv", "question,A,B,C,D,answer\n"), 0)),
      HasSubstr("m1.csv, line 1: its last field is 'answer', which is no letter from A to D; a heading"));
  EXPECT_THAT(ErrorOf(ReadMmlu(Written("m2.csv", "q,w,x,y,z,A\nq,A\n"), 0)),
              HasSubstr("m2.csv, line 2: has 2 fields"));
  EXPECT_THAT(ErrorOf(ReadMmlu(Written("m3.csv", ""), 0)), HasSubstr("holds no question"));
  EXPECT_THAT(
      ErrorOf(ReadMmlu(Written("m4.jsonl", R"({"question": "q", "choices": ["w"], "answer": 0})"), 0)),
      HasSubstr("line 1: \"choices\" is not a list of at least two texts"));
  const std::string folder = JoinPath(::testing::TempDir(), "mmlu-empty");
  ASSERT_TRUE(CreateDirs(folder).ok());
  EXPECT_THAT(ErrorOf(ReadMmlu(folder, 0)), HasSubstr("has no .csv or .jsonl file"));
}

/// A file of these uint16 values after a header.
std::string ChoiceFile(int32_t magic, int32_t count, const std::vector<uint16_t>& values) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = 1;
  header[2] = count;
  std::string bytes(reinterpret_cast<const char*>(header.data()), 1024);
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 2);
}

const std::vector<uint16_t>& TwoQuestions() {
  static const auto& values = *new std::vector<uint16_t>{65535, 30, 0,  1, 2, 3, 10, 11, 12, 2, 20,
                                                         21,    1,  22,  // [10 11 12]: [20 21] or [22]
                                                         65535, 22, 1,  0, 2, 1, 13, 1,  23, 1, 24};
  return values;
}

TEST(ChoiceFileTest, ReadsTheFileOfLlmC) {
  const std::string path = Written("choices.bin", ChoiceFile(20240522, 2, TwoQuestions()));
  const auto questions = ReadChoiceFile(path, 0);
  ASSERT_TRUE(questions.ok()) << questions.status();
  ASSERT_EQ(questions->size(), 2U);
  EXPECT_THAT((*questions)[0].context, ElementsAre(10, 11, 12));
  EXPECT_THAT((*questions)[0].answers, ElementsAre(ElementsAre(20, 21), ElementsAre(22)));
  EXPECT_THAT((*questions)[0].lengths, ElementsAre(2, 1));
  EXPECT_EQ((*questions)[0].right, 1U);
  EXPECT_EQ((*questions)[1].right, 0U);
  const auto one = ReadChoiceFile(path, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->size(), 1U);
}

TEST(ChoiceFileTest, NamesFileAndQuestion) {
  const auto error = [](const std::string& bytes) {
    return ErrorOf(ReadChoiceFile(Written("c.bin", bytes), 0));
  };
  EXPECT_THAT(error("short"), HasSubstr("c.bin: 5 bytes, shorter than the header"));
  EXPECT_THAT(error(ChoiceFile(20240520, 2, {})), HasSubstr("no multiple-choice file of llm.c"));
  EXPECT_THAT(error(ChoiceFile(20240522, 0, {})), HasSubstr("holds 0 questions"));
  EXPECT_THAT(error(ChoiceFile(20240522, 3, TwoQuestions())),
              HasSubstr("question 2 of 3: the file ends inside it"));
  for (const auto& [at, value, what] : std::vector<std::tuple<size_t, uint16_t, std::string>>{
           {0, 1, "question 0 of 2: does not begin with 65535"},
           {3, 2, "its right answer is number 2 of 2"},
           {5, 0, "its context is empty"},
           {9, 60000, "the file ends inside it"},
           {14, 0, "question 1 of 2: does not begin"}}) {
    std::vector<uint16_t> values = TwoQuestions();
    values[at] = value;
    EXPECT_THAT(error(ChoiceFile(20240522, 2, values)), HasSubstr(what));
  }
}

}  // namespace
}  // namespace atl
