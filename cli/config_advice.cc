#include "cli/config_advice.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"
#include "core/codec.h"
#include "core/model_shape.h"
#include "core/published_tokenizers.h"
#include "core/tokenizer_names.h"

namespace atl {
namespace {

/// Compressing only one direction saves little: with e3m0 up and float32 down, 89 % of the bytes move down.
void OneDirection(const RunOptions& run, std::vector<std::string>& advice) {
  const double up = BitsPerValue(run.push_codec);
  const double down = BitsPerValue(run.pull_delta.value_or(run.pull_codec));
  const double full = BitsPerValue(CodecKind::kFp32);
  if (up < full && down == full) {
    advice.push_back(absl::StrFormat(
        "only pushes are compressed: %.3g bits a value up, %.3g down, which is %.0f %% of all bytes; "
        "codec.pull_delta: e3m0 compresses the other direction",
        up, down, 100 * down / (up + down)));
  } else if (down < full && up == full) {
    advice.push_back(absl::StrFormat(
        "only pulls are compressed: %.3g bits a value down, %.3g up, which is %.0f %% of all bytes; "
        "codec.push: e3m0 compresses the other direction",
        down, up, 100 * up / (up + down)));
  }
}

void Vocabulary(const RunOptions& run, std::vector<std::string>& advice) {
  if (run.model.external() != nullptr) return;  // which vocabulary its data has is not known
  if (run.data.tokenizer != kTokenizerNames[0] || run.model.vocabulary() >= kByteVocabulary) return;
  const std::string field = ShapeOf(run.model)->section() + ".vocabulary";
  advice.push_back(absl::StrFormat(
      "data.tokenizer 'bytes' has %d tokens, and %s is %d: every worker will reject its token "
      "files; set %s to at least %d",
      kByteVocabulary, field, run.model.vocabulary(), field, kByteVocabulary));
}

/// A sparse codec saves nothing on a link whose download is as narrow as its upload.
void OnlyPushesAreSparse(const RunOptions& run, std::vector<std::string>& advice) {
  const double down = BitsPerValue(run.pull_delta.value_or(run.pull_codec));
  if (CodecFor(run.push_codec).sparse() == nullptr || down == BitsPerValue(CodecKind::kFp32)) return;
  const double up = BitsPerValue(run.push_codec);
  advice.push_back(
      absl::StrFormat("codec.push: %s shrinks only uploads: %.3g bits a value up, %.3g down, which is %.0f "
                      "%% of all bytes. It "
                      "has no form for downloads; their smallest is codec.pull_delta: e3m0",
                      std::string(CodecName(run.push_codec)), up, down, 100 * down / (up + down)));
}

/// Asynchronous: how much a contribution moves the parameters depends on how many workers make them. The
/// number of workers at the start is only asked for where ranks are counted otherwise.
void DelayCountsRanks(const RunOptions& run, std::vector<std::string>& advice) {
  const uint32_t start = run.round.start_workers;
  if (run.round.mode != RoundMode::kAsync || run.outer.optimizer != OuterOptimizerKind::kDelayedNesterov ||
      run.outer.delay != run.workers || start == 0 || start >= run.workers) {
    return;
  }
  advice.push_back(absl::StrFormat(
      "outer.delay is %d, as run.workers, and round.start_workers is %d: if the %d workers are islands of "
      "several ranks, set outer.delay: %d, the number of those who contribute; otherwise the run learns more "
      "slowly than it should",
      run.outer.delay, start, start, start));
}

}  // namespace

double BitsPerValue(CodecKind kind) {
  // A multiple of every codec's block.
  constexpr uint64_t kSample = uint64_t{1} << 16;
  return 8 * static_cast<double>(CodecFor(kind).EncodedSize(kSample)) / kSample;
}

std::vector<std::string> TokenizerAdvice(const std::string& name) {
  std::vector<std::string> known(std::begin(kTokenizerNames), std::end(kTokenizerNames));
  known.insert(known.end(), std::begin(kPublishedTokenizers), std::end(kPublishedTokenizers));
  if (name.empty() || name == kNoTokenizer || std::ranges::find(known, name) != known.end()) return {};
  // A vocabulary of one's own: the pattern and eight digits.
  if (name.find('-') != std::string::npos) return {};
  const std::string meant = DidYouMean(name, known);
  if (meant.empty()) return {};
  return {absl::StrFormat(
      "data.tokenizer '%s': did you mean '%s'? Workers join only with token files that were made with a "
      "tokenizer of this name; `atoll-data inspect FOLDER` shows it",
      name, meant)};
}

std::vector<std::string> ConfigAdvice(const RunOptions& run) {
  std::vector<std::string> advice = TokenizerAdvice(run.data.tokenizer);
  Vocabulary(run, advice);
  OneDirection(run, advice);
  OnlyPushesAreSparse(run, advice);
  DelayCountsRanks(run, advice);
  return advice;
}

}  // namespace atl
