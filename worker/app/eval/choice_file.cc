#include "worker/app/eval/choice_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

static_assert(std::endian::native == std::endian::little);

absl::Status FileError(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", path, what));
}

absl::StatusOr<size_t> QuestionsIn(const std::string& path, const std::string& bytes) {
  if (bytes.size() < kChoiceHeaderBytes) {
    return FileError(path, absl::StrFormat("%d bytes, shorter than the header of %d; llm.c's hellaswag.py "
                                           "writes such files",
                                           bytes.size(), kChoiceHeaderBytes));
  }
  int32_t words[3];
  std::memcpy(words, bytes.data(), sizeof(words));
  if (words[0] != kChoiceMagic || words[1] != kChoiceVersion) {
    return FileError(path,
                     absl::StrFormat("starts with %d and %d instead of %d and %d: no multiple-choice file of "
                                     "llm.c; --hellaswag reads JSON lines, and --data token files",
                                     words[0], words[1], kChoiceMagic, kChoiceVersion));
  }
  if (words[2] > 0) return static_cast<size_t>(words[2]);
  return FileError(path, absl::StrFormat("says that it holds %d questions", words[2]));
}

/// The numbers of one question, from its begin to its end.
class Question {
 public:
  explicit Question(std::span<const uint16_t> numbers) : rest_(numbers) {}

  absl::StatusOr<ChoiceTokens> Read() {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenId> head, Take(5));
    if (head[0] != kChoiceBegin) return absl::InvalidArgumentError("does not begin with 65535");
    const uint32_t label = head[3], answers = head[4];
    if (answers < 2 || label >= answers) {
      return absl::InvalidArgumentError(
          absl::StrFormat("its right answer is number %d of %d", label, answers));
    }
    ChoiceTokens question = {.right = label};
    ATOLL_ASSIGN_OR_RETURN(question.context, TakeList());
    if (question.context.empty()) return absl::InvalidArgumentError("its context is empty");
    for (uint32_t i = 0; i < answers; ++i) {
      ATOLL_ASSIGN_OR_RETURN(std::vector<TokenId> answer, TakeList());
      if (answer.empty()) return absl::InvalidArgumentError(absl::StrFormat("answer %d is empty", i));
      question.lengths.push_back(static_cast<double>(answer.size()));
      question.answers.push_back(std::move(answer));
    }
    return question;
  }
  size_t left() const { return rest_.size(); }

 private:
  absl::StatusOr<std::vector<TokenId>> Take(size_t count) {
    if (rest_.size() < count) return absl::InvalidArgumentError("the file ends inside it; copy it again");
    std::vector<TokenId> taken(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count));
    rest_ = rest_.subspan(count);
    return taken;
  }
  absl::StatusOr<std::vector<TokenId>> TakeList() {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenId> count, Take(1));
    return Take(count[0]);
  }

  std::span<const uint16_t> rest_;
};

}  // namespace

absl::StatusOr<std::vector<ChoiceTokens>> ReadChoiceFile(const std::string& path, size_t most) {
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  ATOLL_ASSIGN_OR_RETURN(const size_t count, QuestionsIn(path, bytes));
  std::vector<uint16_t> numbers((bytes.size() - kChoiceHeaderBytes) / 2);
  std::memcpy(numbers.data(), bytes.data() + kChoiceHeaderBytes, numbers.size() * 2);
  std::vector<ChoiceTokens> questions;
  size_t at = 0;
  const size_t wanted = most == 0 ? count : std::min(most, count);
  while (questions.size() < wanted) {
    Question reader(std::span<const uint16_t>(numbers).subspan(at));
    auto question = reader.Read();
    if (!question.ok()) {
      return FileError(path, absl::StrFormat("question %d of %d: %s", questions.size(), count,
                                             std::string(question.status().message())));
    }
    questions.push_back(*std::move(question));
    at = numbers.size() - reader.left();
  }
  return questions;
}

}  // namespace atl
