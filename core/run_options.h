#ifndef ATOLL_CORE_RUN_OPTIONS_H_
#define ATOLL_CORE_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "core/model_options.h"

// The run's configuration as plain values: protos/config turns the protobuf RunConfig into this after
// checking it, with defaults filled in. Field meanings and ranges stand in protos/atoll/v1/run.proto.

namespace atl {

enum class CodecKind : uint8_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kInt8 = 4,
  kInt4 = 5,
  kE3m0 = 6,
  kInt8Quantile = 7,
  kTopK64 = 8,
  kTopK128 = 9,
  kTopK64Bf16 = 10,
  kTopK128Bf16 = 11,
};
enum class InnerOptimizerKind : uint8_t { kAdamW = 1, kAdam = 2, kSgd = 3 };
enum class InnerPace : uint8_t { kFixed = 1, kAdaptive = 2 };
enum class OuterOptimizerKind : uint8_t { kNesterov = 1, kSgd = 2, kAdam = 3, kDelayedNesterov = 4 };
enum class MergeWeighting : uint8_t { kUniform = 1, kTokens = 2, kTokensSquaredPerStep = 3 };
/// What sparse contributions are divided by: the weight of all, or of those that hold the value.
enum class SparseAverage : uint8_t { kAll = 1, kPresent = 2 };
enum class MergeMethod : uint8_t { kMean = 1, kRda = 2, kTrimmedMean = 3, kMedian = 4, kCenteredClip = 5 };
/// Of what a push loses to encoding (core/error_feedback.h).
enum class ErrorFeedbackForm : uint8_t { kCarry = 1, kMovingAverage = 2 };
enum class RoundMode : uint8_t { kBarrier = 1, kAsync = 2 };
enum class GraceMode : uint8_t { kFixed = 1, kAdaptive = 2 };
enum class Precision : uint8_t { kFp32 = 1, kBf16 = 2 };
/// What a block of the model leaves for its backward pass: all that it needs, or only the block's input.
enum class Activations : uint8_t { kKept, kRecomputed };
enum class DataMode : uint8_t { kShared = 1, kLocal = 2 };
enum class SequenceBounds : uint8_t { kWithinFiles = 1, kAcrossFiles = 2 };
enum class EvaluatedBy : uint8_t { kWorker = 1, kEvaluator = 2 };
enum class SyncMode : uint8_t { kBlocking = 1, kOverlapped = 2 };
enum class FragmentPattern : uint8_t { kPacked = 1, kStrided = 2 };
enum class AnswerUse : uint8_t { kBlend = 1, kRebase = 2 };

struct DataOptions {
  std::string tokenizer;
  DataMode mode = DataMode::kShared;
  uint32_t partitions = 0;  // never 0 after parsing
  SequenceBounds sequences = SequenceBounds::kWithinFiles;
  bool isolate_documents = false;
};

struct InnerOptions {
  uint32_t steps = 0;  // H
  InnerPace pace = InnerPace::kFixed;
  InnerOptimizerKind optimizer = InnerOptimizerKind::kAdamW;
  double learning_rate = 0;
  double min_learning_rate_ratio = 0.1;
  uint32_t warmup_steps = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double momentum = 0;
  double clip_norm = 1;
  uint32_t batch = 0;  // sequences per micro-batch
  uint32_t accumulation = 1;
  Precision precision = Precision::kFp32;
  Activations activations = Activations::kKept;
};

struct OuterOptions {
  OuterOptimizerKind optimizer = OuterOptimizerKind::kNesterov;
  double learning_rate = 0.7;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 0.1;
  uint32_t delay = 0;  // N of delayed_nesterov; never 0 after parsing
  double spread = 0;   // c of delayed_nesterov
  friend bool operator==(const OuterOptions&, const OuterOptions&) = default;
};

/// How the contributions of a round become one pseudo-gradient (core/merge.h).
struct MergeOptions {
  MergeWeighting weights = MergeWeighting::kTokens;
  MergeMethod method = MergeMethod::kMean;
  double trim = 0.2;       // trimmed_mean: fraction dropped at each end
  double clip_radius = 0;  // centered_clip; 0: a median, see clip_by_distance
  uint32_t clip_iterations = 5;
  /// Of clip_radius 0: at every pass, the median distance from the center; else the median norm, which
  /// rounds recorded by earlier versions had.
  bool clip_by_distance = false;
  bool norm_guard = false;                             // scale each by min(1, median norm / its norm)
  SparseAverage sparse_average = SparseAverage::kAll;  // mean only
  friend bool operator==(const MergeOptions&, const MergeOptions&) = default;
};

/// What makes a contribution an offence, and how many of them ban its worker (core/offences.h).
struct OffenderOptions {
  uint32_t ban_after = 0;  // offences among a worker's last `within` rounds; 0: nobody is banned by rule
  uint32_t within = 10;    // rounds
  double norm = 5;         // times the median norm
  double distance = 3;     // from the merge, times the median distance
  double cosine = -0.2;    // with the merge; below is an offence
  bool measure = false;    // compare with the merge though nobody is banned for it
  bool measures() const { return measure || ban_after > 0; }
};

/// Clipping and Gaussian noise on every worker (core/privacy.h).
struct PrivacyOptions {
  double clip_norm = 0;         // C; 0: off
  double noise_multiplier = 0;  // sigma: each value gets noise of standard deviation sigma * C
  double delta = 1e-5;
  bool enabled() const { return clip_norm > 0; }
  bool noisy() const { return clip_norm > 0 && noise_multiplier > 0; }
};

struct RoundOptions {
  Duration deadline = Seconds(600);
  double quorum = 1;     // fraction of the expected workers
  uint32_t minimum = 1;  // contributions
  Duration grace = Seconds(10);
  Duration lease = Seconds(15);
  uint32_t start_workers = 0;  // never 0 after parsing
  RoundMode mode = RoundMode::kBarrier;
  uint32_t staleness_limit = 0;  // versions; 0: late contributions are refused
  GraceMode grace_mode = GraceMode::kFixed;
};

/// Streaming and overlap (docs/reference/streaming.md).
struct SyncOptions {
  SyncMode mode = SyncMode::kBlocking;
  uint32_t fragments = 1;
  FragmentPattern pattern = FragmentPattern::kPacked;
  uint32_t delay_steps = 1;
  AnswerUse answer = AnswerUse::kRebase;
  double alpha = 0.5;          // of kBlend
  uint32_t max_in_flight = 1;  // never 0 after parsing
};

/// What extensions made of the learning rate's schedule (core/schedule.h).
struct ExtensionOptions {
  double at_step = 0;        // position where the second decay begins; 0: none
  double from = 0;           // the learning rate there, as a fraction of the peak
  uint64_t steps_added = 0;  // to the total, by all extensions
};

struct RunOptions {
  std::string name;
  uint32_t workers = 0;
  uint32_t rounds = 0;  // extensions included
  ExtensionOptions extension;
  uint64_t planned_tokens =
      0;                     // the token budget, where it is no whole number of rounds; 0: that of `rounds`
  uint32_t file_rounds = 0;  // run.rounds of the coordinator's file, where `rounds` differs; 0: the same
  uint64_t seed = 1337;
  ModelOptions model;
  DataOptions data;
  InnerOptions inner;
  OuterOptions outer;
  MergeOptions merge;
  RoundOptions round;
  SyncOptions sync;
  OffenderOptions offenders;
  PrivacyOptions privacy;
  CodecKind push_codec = CodecKind::kFp32;
  CodecKind pull_codec = CodecKind::kFp32;
  std::optional<CodecKind> pull_delta = std::nullopt;  // how a version travels to holders of the one before
  bool error_feedback = true;
  double error_feedback_beta = 1;
  ErrorFeedbackForm error_feedback_form = ErrorFeedbackForm::kCarry;
  bool zstd = false;                  // chunks are packed on the wire
  uint32_t error_feedback_reset = 0;  // versions after which the residual is reset; 0: never
  uint32_t evaluation_every = 1;
  uint32_t evaluation_batches = 40;
  EvaluatedBy evaluated_by = EvaluatedBy::kWorker;
  std::vector<std::string> evaluation_tasks;
  uint32_t evaluation_tasks_every = 10;  // evaluations
  uint32_t keep_versions = 2;
  uint32_t shards = 4;
  uint32_t checkpoint_every = 0;       // versions between automatic checkpoints; 0: none
  uint32_t checkpoint_keep = 3;        // the newest automatic ones
  uint32_t checkpoint_keep_every = 0;  // every Nth is kept permanently; 0: none
  uint32_t max_workers = 1000;
  double joins_per_s = 200;
  Duration forget_workers_after = Seconds(168 * 3600.0);  // 0: never
  uint64_t contribution_budget_bytes = uint64_t{4096} << 20;

  /// Tokens of one inner step on one worker: batch * accumulation * context.
  uint64_t tokens_per_step() const { return uint64_t{inner.batch} * inner.accumulation * model.context(); }
  /// Tokens by which one inner step of all planned workers moves the schedule.
  uint64_t tokens_per_position() const { return tokens_per_step() * workers; }
  /// Tokens of a round of all planned workers.
  uint64_t tokens_per_round() const { return inner.steps * tokens_per_position(); }
  /// Inner steps of the planned run, rounded up.
  uint64_t total_steps() const {
    if (planned_tokens == 0) return uint64_t{rounds} * inner.steps;
    return (planned_tokens + tokens_per_position() - 1) / tokens_per_position();
  }
  /// The token budget that ends the run: rounds * H * tokens per step * planned workers, unless it was kept
  /// when one of these changed.
  uint64_t total_tokens() const { return planned_tokens > 0 ? planned_tokens : rounds * tokens_per_round(); }
  /// Rounds that take `tokens`, rounded up.
  uint64_t rounds_for(uint64_t tokens) const {
    return (tokens + tokens_per_round() - 1) / tokens_per_round();
  }
};

}  // namespace atl

#endif  // ATOLL_CORE_RUN_OPTIONS_H_
