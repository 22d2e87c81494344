#include "worker/app/eval/choice_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kAnswersAtOnce = 64;

struct Answer {
  size_t question;
  size_t answer;
  std::vector<TokenId> tokens;  // with the context
  size_t first;                 // of its own
};

absl::StatusOr<std::vector<Answer>> AnswersOf(std::span<const ChoiceTokens> questions, uint32_t context) {
  std::vector<Answer> answers;
  const size_t most = size_t{context} + 1;
  for (size_t q = 0; q < questions.size(); ++q) {
    for (size_t a = 0; a < questions[q].answers.size(); ++a) {
      const std::vector<TokenId>& own = questions[q].answers[a];
      if (own.size() > context) {
        return absl::InvalidArgumentError(
            absl::StrFormat("answer %d of question %d has %d tokens, and the model sees %d at once", a, q,
                            own.size(), context));
      }
      Answer& answer = answers.emplace_back(
          Answer{.question = q, .answer = a, .tokens = questions[q].context, .first = 0});
      answer.tokens.insert(answer.tokens.end(), own.begin(), own.end());
      if (answer.tokens.size() > most) {
        answer.tokens.erase(answer.tokens.begin(), answer.tokens.end() - static_cast<std::ptrdiff_t>(most));
      }
      answer.first = answer.tokens.size() - own.size();
    }
  }
  // Those of one length are read together.
  std::ranges::stable_sort(answers, std::greater(),
                           [](const Answer& answer) { return answer.tokens.size(); });
  return answers;
}

size_t Best(const std::vector<double>& scores) {
  return static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace

ChoiceTokens EncodeQuestion(const Tokenizer& tokenizer, const ChoiceQuestion& question) {
  std::string context = question.context;
  const size_t end = context.find_last_not_of(" \t\n\v\f\r") + 1;  // npos + 1 is 0
  const std::string spaces = context.substr(end);
  context.resize(end);
  ChoiceTokens tokens = {.lengths = question.lengths, .right = question.right, .subject = question.subject};
  tokenizer.Encode(context, tokens.context);
  for (const std::string& answer : question.answers) {
    std::vector<TokenId> whole;
    tokenizer.Encode(absl::StrCat(context, spaces, answer), whole);
    const size_t known = std::min(whole.size(), tokens.context.size());
    tokens.answers.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(known), whole.end());
  }
  return tokens;
}

absl::StatusOr<std::vector<ChoiceOutcome>> ScoreChoices(std::span<const ChoiceTokens> questions,
                                                        const Scorer& scorer, const ScoreProgress& progress) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Answer> answers, AnswersOf(questions, scorer.context));
  std::vector<std::vector<double>> sums(questions.size());
  for (size_t q = 0; q < questions.size(); ++q) sums[q].resize(questions[q].answers.size());
  for (size_t begin = 0; begin < answers.size(); begin += kAnswersAtOnce) {
    const size_t count = std::min(kAnswersAtOnce, answers.size() - begin);
    std::vector<ScoreRequest> requests;
    for (const Answer& answer : std::span(answers).subspan(begin, count)) {
      requests.push_back({.tokens = answer.tokens, .first = answer.first});
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScores> scores, scorer.score(requests));
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float>& found = scores[i].log_probabilities;
      sums[answers[begin + i].question][answers[begin + i].answer] =
          std::accumulate(found.begin(), found.end(), 0.0);
    }
    progress((begin + count) * questions.size() / answers.size());
  }
  std::vector<ChoiceOutcome> outcomes;
  for (size_t q = 0; q < questions.size(); ++q) {
    std::vector<double> by_length = sums[q];
    for (size_t a = 0; a < by_length.size(); ++a) by_length[a] /= questions[q].lengths[a];
    outcomes.push_back({.right = Best(sums[q]) == questions[q].right,
                        .right_by_length = Best(by_length) == questions[q].right});
  }
  return outcomes;
}

Accuracy AccuracyOf(size_t right, size_t questions) {
  const auto n = static_cast<double>(questions);
  const double share = static_cast<double>(right) / n;
  // Of the sample's deviation, as lm-evaluation-harness has it.
  const double error = questions > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : 0;
  return {.share = share, .error = error};
}

}  // namespace atl
