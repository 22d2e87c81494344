#include <type_traits>
#include <utility>
#include <vector>

#include "common/status.h"
#include "core/run_options.h"
#include "protos/config/check.h"
#include "protos/config/check_evaluation.h"
#include "protos/config/defaults.h"
#include "protos/config/model_options.h"
#include "protos/config/problem.h"
#include "protos/config/run_config.h"

namespace atl {
namespace {

// The core's enumerations have the numbers of the protobuf ones; CheckFields has refused every other number.
template <typename Core, typename Proto>
constexpr Core As(Proto value) {
  return static_cast<Core>(static_cast<std::underlying_type_t<Core>>(value));
}

static_assert(As<CodecKind>(v1::CODEC_E3M0) == CodecKind::kE3m0 &&
              As<CodecKind>(v1::CODEC_TOPK128_BF16) == CodecKind::kTopK128Bf16 &&
              v1::Codec_MAX == v1::CODEC_TOPK128_BF16);
static_assert(As<InnerOptimizerKind>(v1::INNER_OPTIMIZER_SGD) == InnerOptimizerKind::kSgd &&
              v1::InnerOptimizer_MAX == v1::INNER_OPTIMIZER_SGD);
static_assert(As<OuterOptimizerKind>(v1::OUTER_OPTIMIZER_DELAYED_NESTEROV) ==
                  OuterOptimizerKind::kDelayedNesterov &&
              v1::OuterOptimizer_MAX == v1::OUTER_OPTIMIZER_DELAYED_NESTEROV);
static_assert(As<InnerPace>(v1::INNER_PACE_ADAPTIVE) == InnerPace::kAdaptive &&
              v1::InnerPace_MAX == v1::INNER_PACE_ADAPTIVE);
static_assert(As<MergeMethod>(v1::MERGE_METHOD_CENTERED_CLIP) == MergeMethod::kCenteredClip &&
              v1::MergeMethod_MAX == v1::MERGE_METHOD_CENTERED_CLIP);
static_assert(As<CodecKind>(v1::PULL_DELTA_INT8) == CodecKind::kInt8 &&
              As<CodecKind>(v1::PULL_DELTA_INT4) == CodecKind::kInt4 &&
              As<CodecKind>(v1::PULL_DELTA_E3M0) == CodecKind::kE3m0 &&
              v1::PullDelta_MAX == v1::PULL_DELTA_E3M0);
static_assert(As<SparseAverage>(v1::SPARSE_AVERAGE_PRESENT) == SparseAverage::kPresent &&
              v1::SparseAverage_MAX == v1::SPARSE_AVERAGE_PRESENT);
static_assert(As<ErrorFeedbackForm>(v1::ERROR_FEEDBACK_FORM_MOVING_AVERAGE) ==
                  ErrorFeedbackForm::kMovingAverage &&
              v1::ErrorFeedbackForm_MAX == v1::ERROR_FEEDBACK_FORM_MOVING_AVERAGE);
static_assert(As<RoundMode>(v1::ROUND_MODE_FREE) == RoundMode::kAsync &&
              v1::RoundMode_MAX == v1::ROUND_MODE_FREE);
static_assert(As<GraceMode>(v1::GRACE_MODE_ADAPTIVE) == GraceMode::kAdaptive &&
              v1::GraceMode_MAX == v1::GRACE_MODE_ADAPTIVE);
static_assert(As<MergeWeighting>(v1::MERGE_WEIGHTS_TOKENS_SQUARED_PER_STEP) ==
                  MergeWeighting::kTokensSquaredPerStep &&
              v1::MergeWeights_MAX == v1::MERGE_WEIGHTS_TOKENS_SQUARED_PER_STEP);
static_assert(As<Precision>(v1::PRECISION_BF16) == Precision::kBf16 &&
              v1::Precision_MAX == v1::PRECISION_BF16);
static_assert(As<DataMode>(v1::DATA_MODE_LOCAL) == DataMode::kLocal &&
              v1::DataMode_MAX == v1::DATA_MODE_LOCAL);
static_assert(As<EvaluatedBy>(v1::EVALUATED_BY_EVALUATOR) == EvaluatedBy::kEvaluator &&
              v1::EvaluatedBy_MAX == v1::EVALUATED_BY_EVALUATOR);

static_assert(As<SequenceBounds>(v1::SEQUENCE_BOUNDS_ACROSS_FILES) == SequenceBounds::kAcrossFiles &&
              v1::SequenceBounds_MAX == v1::SEQUENCE_BOUNDS_ACROSS_FILES);

InnerOptions InnerOf(const v1::InnerSection& inner) {
  InnerOptions options;
  options.steps = inner.steps();
  options.pace = As<InnerPace>(inner.pace());
  options.optimizer = As<InnerOptimizerKind>(inner.optimizer());
  options.learning_rate = inner.learning_rate();
  options.min_learning_rate_ratio = inner.min_learning_rate_ratio();
  options.warmup_steps = inner.warmup_steps();
  options.beta1 = inner.beta1();
  options.beta2 = inner.beta2();
  options.epsilon = inner.epsilon();
  options.weight_decay = inner.weight_decay();
  options.momentum = inner.momentum();
  options.clip_norm = inner.clip_norm();
  options.batch = inner.batch();
  options.accumulation = inner.accumulation();
  options.precision = As<Precision>(inner.precision());
  options.activations = inner.recompute_activations() ? Activations::kRecomputed : Activations::kKept;
  return options;
}

OuterOptions OuterOf(const v1::OuterSection& outer, uint32_t workers) {
  OuterOptions options;
  options.optimizer = As<OuterOptimizerKind>(outer.optimizer());
  options.learning_rate = outer.learning_rate();
  options.momentum = outer.momentum();
  options.beta1 = outer.beta1();
  options.beta2 = outer.beta2();
  options.epsilon = outer.epsilon();
  options.delay = outer.delay() == 0 ? workers : outer.delay();
  options.spread = outer.spread();
  return options;
}

MergeOptions MergeOf(const v1::MergeSection& merge) {
  MergeOptions options;
  options.weights = As<MergeWeighting>(merge.weights());
  options.method = As<MergeMethod>(merge.method());
  options.trim = merge.trim();
  options.clip_radius = merge.clip_radius();
  options.clip_iterations = merge.clip_iterations();
  options.clip_by_distance = merge.clip_radius() == 0;
  options.norm_guard = merge.norm_guard();
  options.sparse_average = As<SparseAverage>(merge.sparse_average());
  return options;
}

RoundOptions RoundOf(const v1::RoundSection& round, uint32_t workers) {
  RoundOptions options;
  options.deadline = Seconds(round.deadline_s());
  options.quorum = round.quorum();
  options.minimum = round.minimum();
  options.grace = Seconds(round.grace_s());
  options.lease = Seconds(round.lease_s());
  options.start_workers = round.start_workers() == 0 ? workers : round.start_workers();
  options.mode = As<RoundMode>(round.mode());
  options.staleness_limit = round.staleness_limit();
  options.grace_mode = As<GraceMode>(round.grace());
  return options;
}

SyncOptions SyncOf(const v1::SyncSection& sync) {
  SyncOptions options;
  options.mode = As<SyncMode>(sync.mode());
  options.fragments = sync.fragments();
  options.pattern = As<FragmentPattern>(sync.pattern());
  options.delay_steps = sync.delay_steps();
  options.answer = As<AnswerUse>(sync.answer());
  options.alpha = sync.alpha();
  options.max_in_flight = sync.max_in_flight() == 0 ? sync.fragments() : sync.max_in_flight();
  return options;
}

OffenderOptions OffendersOf(const v1::OffendersSection& offenders) {
  OffenderOptions options;
  options.ban_after = offenders.ban_after();
  options.within = offenders.within();
  options.norm = offenders.norm();
  options.distance = offenders.distance();
  options.cosine = offenders.cosine();
  options.measure = offenders.measure();
  return options;
}

PrivacyOptions PrivacyOf(const v1::PrivacySection& privacy) {
  PrivacyOptions options;
  options.clip_norm = privacy.clip_norm();
  options.noise_multiplier = privacy.noise_multiplier();
  options.delta = privacy.delta();
  return options;
}

RunOptions Convert(const v1::RunConfig& config) {
  RunOptions options;
  options.name = config.run().name();
  options.workers = config.run().workers();
  options.rounds = config.run().rounds();
  options.seed = config.run().seed();
  options.extension = {.at_step = config.run().extended_at_step(),
                       .from = config.run().extended_from(),
                       .steps_added = config.run().extended_steps()};
  options.planned_tokens = config.run().planned_tokens();
  options.file_rounds = config.run().file_rounds();
  options.model = ModelOptionsOf(config.model());
  options.data.tokenizer = config.data().tokenizer();
  options.data.mode = As<DataMode>(config.data().mode());
  options.data.sequences = As<SequenceBounds>(config.data().sequences());
  options.data.isolate_documents = config.data().isolate_documents();
  options.data.partitions = config.data().partitions() == 0 ? options.workers : config.data().partitions();
  options.inner = InnerOf(config.inner());
  options.outer = OuterOf(config.outer(), options.workers);
  options.merge = MergeOf(config.merge());
  options.round = RoundOf(config.round(), options.workers);
  options.sync = SyncOf(config.sync());
  options.offenders = OffendersOf(config.offenders());
  options.privacy = PrivacyOf(config.privacy());
  options.push_codec = As<CodecKind>(config.codec().push());
  options.pull_codec = As<CodecKind>(config.codec().pull());
  if (config.codec().pull_delta() != v1::PULL_DELTA_NONE) {
    options.pull_delta = As<CodecKind>(config.codec().pull_delta());
  }
  options.zstd = config.codec().zstd();
  options.error_feedback = config.codec().error_feedback();
  options.error_feedback_beta = config.codec().error_feedback_beta();
  options.error_feedback_form = As<ErrorFeedbackForm>(config.codec().error_feedback_form());
  options.error_feedback_reset = config.codec().error_feedback_reset();
  options.evaluation_every = config.evaluation().every();
  options.evaluation_batches = config.evaluation().batches();
  options.evaluated_by = As<EvaluatedBy>(config.evaluation().by());
  options.evaluation_tasks = TaskNames(config.evaluation().tasks());
  options.evaluation_tasks_every = config.evaluation().tasks_every();
  options.keep_versions = config.checkpoint().keep_versions();
  options.shards = config.checkpoint().shards();
  options.checkpoint_every = config.checkpoint().every();
  options.checkpoint_keep = config.checkpoint().keep();
  options.checkpoint_keep_every = config.checkpoint().keep_every();
  options.max_workers = config.limits().max_workers();
  options.joins_per_s = config.limits().joins_per_s();
  options.forget_workers_after = Seconds(config.limits().forget_workers_after_h() * 3600);
  options.contribution_budget_bytes = config.limits().contribution_budget_mib() << 20;
  return options;
}

}  // namespace

absl::StatusOr<RunOptions> ToRunOptions(const v1::RunConfig& config) {
  v1::RunConfig complete = config;
  FillAbsent(&complete);
  std::vector<ConfigProblem> problems = CheckFields(complete);
  if (problems.empty()) problems = CheckTogether(complete);
  ATOLL_RETURN_IF_ERROR(ProblemsToStatus(std::move(problems), ""));
  return Convert(complete);
}

}  // namespace atl
