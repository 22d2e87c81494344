#include "worker/torch/torch_replica.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "worker/data/background_check.h"
#include "worker/data/batches.h"
#include "worker/data/prefetched_samples.h"
#include "worker/data/training_data.h"
#include "worker/torch/batch_tensors.h"
#include "worker/torch/device.h"
#include "worker/torch/device_encoder_maker.h"
#include "worker/torch/device_queues.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/generator_state.h"
#include "worker/torch/gradient_exchange.h"
#include "worker/torch/inner_optimizer.h"
#include "worker/torch/language_model.h"
#include "worker/torch/matmul_peak.h"
#include "worker/torch/model_trial.h"
#include "worker/torch/replica_data.h"
#include "worker/torch/smaller_steps.h"
#include "worker/torch/step_numbers.h"
#include "worker/torch/step_totals.h"
#include "worker/torch/text_continuation.h"
#include "worker/torch/text_scoring.h"
#include "worker/torch/torch_status.h"

namespace atl {
namespace {

DeviceQueueFactory EncoderQueues(const TorchReplicaOptions& options, const torch::Device& device) {
  if (options.encode_on_cpu) return {};
  return options.device_queues ? options.device_queues : QueuesOf(device);
}

class ModelReplica final : public TorchReplica {
 public:
  ModelReplica(const TorchReplicaOptions& options, std::unique_ptr<FlatParameters> parameters,
               ReplicaData data)
      : run_(options.run),
        clock_(options.clock),
        log_(options.log),
        score_tasks_(options.score_tasks),
        parameters_(std::move(parameters)),
        encoders_(EncoderQueues(options, parameters_->device()), *parameters_, log_),
        model_(MakeLanguageModel(run_.model, run_.inner.precision, *parameters_, run_.inner.activations)),
        ranks_(options.ranks),
        optimizer_(run_.inner, *parameters_, ranks_ != nullptr ? &ranks_->collectives() : nullptr,
                   options.as_on_gpu ? InnerOptimizer::Update::kByDeviceKernels
                                     : InnerOptimizer::Update::kWhereParametersAre),
        data_(std::move(data.data)),
        sequences_(data.sequences) {
    if (optimizer_.CanQueue()) PrepareQueue(options);
    if (ranks_ == nullptr) return;
    const bool in_one_pass = run_.inner.activations == Activations::kKept;
    exchange_ = std::make_unique<GradientExchange>(
        *parameters_, ranks_->collectives(), in_one_pass ? GradientOverlap::kYes : GradientOverlap::kNo);
  }

  const Manifest& manifest() const override { return parameters_->manifest(); }
  uint64_t samples_consumed() const override { return samples_consumed_; }
  std::string dataset_fingerprint() const override { return data_ ? data_->fingerprint() : ""; }
  std::string device() const override;

  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override;
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override;
  std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options) override {
    auto on_device = encoders_.Make(options);
    return on_device != nullptr ? std::move(on_device) : TorchReplica::MakeEncoder(options);
  }
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
  absl::Status InnerSteps(std::span<const double> learning_rates,
                          std::vector<InnerStepResult>& results) override;
  uint32_t steps_at_once() const override { return optimizer_.CanQueue() ? steps_at_once_ : 1; }
  ComputeCost compute_cost() const override { return cost_; }
  absl::Status Seek(uint64_t samples_consumed) override;
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override;
  absl::Status Generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                        const TokenSink& take) override;
  absl::StatusOr<std::vector<TokenScores>> Score(std::span<const ScoreRequest> requests,
                                                 const ScoreOptions& options) override;
  absl::StatusOr<std::vector<TaskScore>> ScoreTasks(const TaskCall& call) override;
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override;
  absl::Status SaveState(ReplicaState& state) override;
  absl::Status LoadState(const ReplicaState& state) override;

  void Initialise() { model_->Initialise(run_.seed); }
  absl::Status Try() const {
    return TryModel(*model_, run_.model.context(), run_.model.vocabulary(), parameters_->device());
  }
  /// A replica that only computes losses or text does not need its cost.
  void MeasureCost() {
    cost_ = {.flops_per_token = ShapeOf(run_.model)->TrainingFlopsPerToken(),
             .peak_flops_per_second = MeasureMatmulPeak(parameters_->device(), run_.inner.precision)};
  }

 private:
  absl::Status CheckFragment(const FragmentLayout& fragment, size_t values) const;
  absl::Status CheckData() const;
  absl::Status CheckTokens(const Batch& batch) const;
  const LanguageModel& ModelFor(ScorePrecision precision);
  absl::Status CheckState(const ReplicaState& state);
  uint32_t rank() const { return ranks_ != nullptr ? ranks_->rank() : 0; }
  uint32_t ranks() const { return ranks_ != nullptr ? ranks_->size() : 1; }
  template <typename Body>
  auto CatchInStep(Body&& body) const {
    return CatchTorch("inner step", std::forward<Body>(body), SmallerSteps(run_.inner, encoders_.made_one()));
  }
  // Sums gradients over the micro-batches of one step; returns the mean loss, which is still being computed.
  // `data` grows by the time that reading them took.
  absl::StatusOr<torch::Tensor> AccumulateGradients(Duration& data);
  void PrepareQueue(const TorchReplicaOptions& options);
  // One step that nobody waits for.
  absl::StatusOr<InnerStepResult> QueueStep(double learning_rate);
  absl::Status QueueSteps(std::span<const double> learning_rates, std::vector<InnerStepResult>& results);
  absl::Status FillRepeatedBatches(Duration& data);
  // Of one micro-batch; its loss is added to `loss`. `last`: no other follows in this step.
  void AddGradients(const BatchTensors& tensors, torch::Tensor& loss, bool last = false);
  // The work of repeated_, on repeated_batches_.
  void ComputeRepeatedBatches();
  void UpdateWith(const torch::Tensor& loss);
  void SeedDropout(uint64_t position) const;
  // Of a step that was not taken; from now on they are those of the next.
  void ClearGradients();
  // What the step at this position did. FailedPrecondition when its numbers are not finite.
  absl::Status Judge(uint64_t step, uint64_t position, const StepTotals& totals,
                     InnerStepResult& result) const;
  uint64_t samples_per_step() const { return uint64_t{run_.inner.batch} * run_.inner.accumulation * ranks(); }
  // Of all ranks.
  absl::StatusOr<StepTotals> TotalsOfStep(const absl::StatusOr<double>& loss);
  // Sums of the losses of the held-out batches that fall to this rank.
  absl::Status EvaluateBatches(uint32_t max_batches, std::vector<double>& losses,
                               std::vector<double>& tokens);
  torch::Tensor LossOf(const BatchTensors& batch, ModelMode mode) const;
  MonoTime Now() const { return clock_ != nullptr ? clock_->Now() : MonoTime(); }

  const RunOptions run_;
  const Clock* const clock_;
  const Logger log_;
  const decltype(TorchReplicaOptions::score_tasks) score_tasks_;
  const std::unique_ptr<FlatParameters> parameters_;
  DeviceEncoderMaker encoders_;
  const std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<LanguageModel> float32_model_;  // the same, for ScorePrecision::kFloat32
  RankGroup* const ranks_;                        // null: this process alone
  InnerOptimizer optimizer_;
  std::unique_ptr<GradientExchange> exchange_;  // null without ranks
  const std::shared_ptr<const TrainingData> data_;
  const SequenceOptions sequences_;
  std::unique_ptr<PrefetchedSamples> training_;
  std::unique_ptr<BackgroundCheck> check_;
  ComputeCost cost_;
  uint32_t partition_ = 0;
  uint32_t partitions_ = 1;
  uint64_t samples_consumed_ = 0;
  std::optional<StepNumbers> numbers_;          // of queued steps
  std::unique_ptr<RepeatedStep> repeated_;      // null: each queued step is different work
  std::vector<BatchTensors> repeated_batches_;  // on the device, one for each micro-batch
  uint32_t steps_at_once_ = 2;                  // about a quarter of a second
  bool gradients_dirty_ = false;                // left by a step that was not taken
  Batch batch_;
};

std::string ModelReplica::device() const {
  const torch::Device device = parameters_->device();
  if (device.is_cpu())
    return absl::StrCat("cpu (", Counted(static_cast<uint64_t>(at::get_num_threads()), "thread"), ")");
  return device.str();
}

absl::Status ModelReplica::CheckFragment(const FragmentLayout& fragment, size_t values) const {
  if (values != fragment.elements) {
    return absl::InvalidArgumentError(absl::StrFormat("fragment %d: %d values given, its layout has %d",
                                                      fragment.id.value(), values, fragment.elements));
  }
  const FragmentLayout& own = parameters_->layout();
  for (const TensorSlot& slot : fragment.slots) {
    if (slot.tensor < own.slots.size() && slot.elements == own.slots[slot.tensor].elements &&
        slot.offset + slot.elements <= fragment.elements) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("fragment %d: tensor %d with %d elements at %d does not fit the model; the layout is "
                        "of another manifest",
                        fragment.id.value(), slot.tensor, slot.elements, slot.offset));
  }
  return absl::OkStatus();
}

absl::Status ModelReplica::ReadFragment(const FragmentLayout& fragment, std::span<float> out) {
  ATOLL_RETURN_IF_ERROR(CheckFragment(fragment, out.size()));
  return CatchTorch("reading the model's parameters", [&] {
    parameters_->CopyOut(fragment, out);
    return absl::OkStatus();
  });
}

absl::Status ModelReplica::WriteFragment(const FragmentLayout& fragment, std::span<const float> values) {
  ATOLL_RETURN_IF_ERROR(CheckFragment(fragment, values.size()));
  return CatchTorch("writing the model's parameters", [&] {
    parameters_->CopyIn(fragment, values);
    return absl::OkStatus();
  });
}

absl::Status ModelReplica::CheckData() const {
  if (training_ != nullptr) return check_->status();
  return absl::FailedPreconditionError("this replica has no dataset; give it a data folder");
}

absl::Status ModelReplica::CheckTokens(const Batch& batch) const {
  // A lookup beyond the embedding ends the worker without its reason, or worse on an accelerator.
  const int64_t largest = std::max(std::ranges::max(batch.inputs), std::ranges::max(batch.targets));
  if (largest < int64_t{run_.model.vocabulary()}) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("a batch at sample %d has token %d, and the model's vocabulary is %d: a token file was "
                      "changed while it was in use; `atoll-data inspect` names it",
                      samples_consumed_, largest, run_.model.vocabulary()));
}

void ModelReplica::ClearGradients() {
  if (!std::exchange(gradients_dirty_, true)) return;
  const torch::NoGradGuard no_grad;
  parameters_->gradients().zero_();
}

absl::StatusOr<torch::Tensor> ModelReplica::AccumulateGradients(Duration& data) {
  ATOLL_RETURN_IF_ERROR(CheckData());
  const uint64_t begins_at = samples_consumed_ + uint64_t{rank()} * run_.inner.batch;
  SeedDropout(begins_at);
  ClearGradients();
  // Nothing of it is read here: every reading waits for the device.
  torch::Tensor loss =
      torch::zeros({}, torch::TensorOptions().dtype(torch::kFloat64).device(parameters_->device()));
  const uint64_t of_all = uint64_t{run_.inner.batch} * ranks();
  for (uint32_t micro = 0; micro < run_.inner.accumulation; ++micro) {
    const MonoTime begin = Now();
    const uint64_t position = begins_at + micro * of_all;
    ATOLL_RETURN_IF_ERROR(training_->Read(position, run_.inner.batch, batch_, position + of_all));
    ATOLL_RETURN_IF_ERROR(CheckTokens(batch_));
    const BatchTensors tensors = BatchOnDevice(batch_, run_.inner.batch, parameters_->device());
    data += Now() - begin;
    AddGradients(tensors, loss, micro + 1 == run_.inner.accumulation);
  }
  return loss.div_(static_cast<double>(run_.inner.accumulation));
}

absl::StatusOr<StepTotals> ModelReplica::TotalsOfStep(const absl::StatusOr<double>& loss) {
  if (ranks_ == nullptr) {
    ATOLL_RETURN_IF_ERROR(loss.status());
    return StepTotals{.loss = *loss, .gradient_squares = optimizer_.GradientSquares()};
  }
  // Also after a failure: the other ranks wait for this one's part.
  exchange_->Finish();
  exchange_->ShareSeenGradients();
  return SumOverRanks(ranks_->collectives(), loss, optimizer_.GradientSquares());
}

absl::Status ModelReplica::Judge(uint64_t step, uint64_t position, const StepTotals& totals,
                                 InnerStepResult& result) const {
  const double scale = 1.0 / (run_.inner.accumulation * ranks());
  result.loss = totals.loss;
  result.gradient_norm = scale * std::sqrt(totals.gradient_squares);
  result.tokens = run_.tokens_per_step() * ranks();
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "inner step %d, sample %d: loss %g, gradient norm %g are not finite; the step was not taken; lower "
      "inner.learning_rate or start from an older version",
      step, position, result.loss, result.gradient_norm));
}

absl::StatusOr<InnerStepResult> ModelReplica::InnerStep(double learning_rate) {
  InnerStepResult result;
  const absl::StatusOr<double> loss = CatchInStep([&]() -> absl::StatusOr<double> {
    ATOLL_ASSIGN_OR_RETURN(const torch::Tensor mean, AccumulateGradients(result.data));
    return mean.item<double>();
  });
  return CatchInStep([&]() -> absl::StatusOr<InnerStepResult> {
    ATOLL_ASSIGN_OR_RETURN(const StepTotals totals, TotalsOfStep(loss));
    ATOLL_RETURN_IF_ERROR(Judge(optimizer_.steps() + 1, samples_consumed_, totals, result));
    optimizer_.Step(learning_rate, 1.0 / (run_.inner.accumulation * ranks()), result.gradient_norm);
    if (exchange_ != nullptr) exchange_->ShareParameters();
    gradients_dirty_ = false;
    samples_consumed_ += samples_per_step();
    return result;
  });
}

void ModelReplica::SeedDropout(uint64_t position) const {
  // Dropout is a function of the position in the data, so that a step can be repeated.
  if (model_->draws_random_numbers()) torch::manual_seed(run_.seed + (position << 16) + partition_);
}

void ModelReplica::PrepareQueue(const TorchReplicaOptions& options) {
  numbers_.emplace(kMostStepsAtOnce, parameters_->device());
  StepGraphFactory graphs = options.step_graphs ? options.step_graphs : GraphsOf(parameters_->device());
  const bool draws_again = run_.inner.activations != Activations::kKept && model_->draws_random_numbers();
  const bool same_work = !run_.data.isolate_documents && run_.model.external() == nullptr && !draws_again;
  if (!options.graph_steps || !graphs || !same_work) return;
  const auto tokens = torch::zeros({int64_t{run_.inner.batch}, int64_t{run_.model.context()}}, torch::kInt64)
                          .to(parameters_->device());
  for (uint32_t micro = 0; micro < run_.inner.accumulation; ++micro)
    repeated_batches_.push_back({.inputs = tokens.clone(), .targets = tokens.clone()});
  repeated_ = std::make_unique<RepeatedStep>(
      std::move(graphs), [this] { ComputeRepeatedBatches(); }, log_);
}

absl::Status ModelReplica::FillRepeatedBatches(Duration& data) {
  ATOLL_RETURN_IF_ERROR(CheckData());
  const MonoTime begin = Now();
  uint64_t position = samples_consumed_;
  for (BatchTensors& tensors : repeated_batches_) {
    ATOLL_RETURN_IF_ERROR(training_->Read(position, run_.inner.batch, batch_, position + run_.inner.batch));
    ATOLL_RETURN_IF_ERROR(CheckTokens(batch_));
    const BatchTensors read = BatchOnDevice(batch_, run_.inner.batch, parameters_->device());
    tensors.inputs.copy_(read.inputs);
    tensors.targets.copy_(read.targets);
    position += run_.inner.batch;
  }
  data += Now() - begin;
  return absl::OkStatus();
}

void ModelReplica::AddGradients(const BatchTensors& tensors, torch::Tensor& loss, bool last) {
  const torch::Tensor own = LossOf(tensors, ModelMode::kTraining);
  if (exchange_ != nullptr && last) exchange_->Arm();
  own.backward();
  loss.add_(own.detach());
}

void ModelReplica::ComputeRepeatedBatches() {
  torch::Tensor loss =
      torch::zeros({}, torch::TensorOptions().dtype(torch::kFloat64).device(parameters_->device()));
  for (const BatchTensors& tensors : repeated_batches_) AddGradients(tensors, loss);
  UpdateWith(loss.div_(static_cast<double>(run_.inner.accumulation)));
}

void ModelReplica::UpdateWith(const torch::Tensor& loss) {
  numbers_->Set(loss, optimizer_.QueueGradientSquares());
  optimizer_.QueueStep(1.0 / run_.inner.accumulation, numbers_->squares(), numbers_->broken());
}

absl::StatusOr<InnerStepResult> ModelReplica::QueueStep(double learning_rate) {
  InnerStepResult result;
  if (repeated_ != nullptr) {
    ATOLL_RETURN_IF_ERROR(FillRepeatedBatches(result.data));
    ClearGradients();
    SeedDropout(samples_consumed_);
    optimizer_.BeginQueuedStep(learning_rate);
    repeated_->Run();
  } else {
    ATOLL_ASSIGN_OR_RETURN(const torch::Tensor loss, AccumulateGradients(result.data));
    optimizer_.BeginQueuedStep(learning_rate);
    UpdateWith(loss);
  }
  numbers_->Keep();
  gradients_dirty_ = false;
  samples_consumed_ += samples_per_step();
  return result;
}

absl::Status ModelReplica::InnerSteps(std::span<const double> learning_rates,
                                      std::vector<InnerStepResult>& results) {
  const MonoTime begin = Now();
  const size_t had = results.size();
  const bool queue = learning_rates.size() > 1 && optimizer_.CanQueue();
  const absl::Status ended =
      queue ? QueueSteps(learning_rates, results) : TorchReplica::InnerSteps(learning_rates, results);
  if (clock_ != nullptr && results.size() > had)
    steps_at_once_ = StepsInAQuarterSecond((Now() - begin) / static_cast<int64_t>(results.size() - had));
  return ended;
}

absl::Status ModelReplica::QueueSteps(std::span<const double> learning_rates,
                                      std::vector<InnerStepResult>& results) {
  const uint64_t first = samples_consumed_;
  const uint64_t before = optimizer_.steps();
  std::vector<InnerStepResult> queued;
  const absl::Status ended = CatchInStep([&]() -> absl::Status {
    numbers_->Begin();
    for (const double learning_rate :
         learning_rates.first(std::min<size_t>(learning_rates.size(), kMostStepsAtOnce))) {
      ATOLL_ASSIGN_OR_RETURN(const InnerStepResult step, QueueStep(learning_rate));
      queued.push_back(step);
    }
    return absl::OkStatus();
  });
  optimizer_.Uncount(optimizer_.steps() - before - queued.size());  // of a step that failed
  const absl::Status judged = CatchInStep([&]() -> absl::Status {
    const std::vector<StepTotals> totals = numbers_->Read();
    for (size_t i = 0; i < queued.size(); ++i) {
      const uint64_t position = first + i * samples_per_step();
      const absl::Status judgement = Judge(before + i + 1, position, totals[i], queued[i]);
      if (!judgement.ok()) {
        // Neither this step nor those behind it have changed anything.
        optimizer_.Uncount(optimizer_.steps() - before - i);
        samples_consumed_ = position;
        return judgement;
      }
      results.push_back(queued[i]);
    }
    return absl::OkStatus();
  });
  return judged.ok() ? ended : judged;
}

absl::Status ModelReplica::Seek(uint64_t samples_consumed) {
  ATOLL_RETURN_IF_ERROR(CheckData());
  samples_consumed_ = samples_consumed;
  return absl::OkStatus();
}

absl::Status ModelReplica::SetPartition(uint32_t partition, uint32_t partitions) {
  if (!data_) return absl::FailedPreconditionError("this replica has no dataset; give it a data folder");
  if (partition >= partitions) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "data partition %d is not below the number of partitions, %d", partition, partitions));
  }
  training_ = std::make_unique<PrefetchedSamples>(
      TrainingSamples(data_, sequences_, run_.seed, partition, partitions));
  if (check_ == nullptr) check_ = std::make_unique<BackgroundCheck>(data_);
  partition_ = partition;
  partitions_ = partitions;
  samples_consumed_ = 0;
  return absl::OkStatus();
}

absl::Status ModelReplica::SaveState(ReplicaState& state) {
  return CatchTorch("saving the inner optimizer's state", [&] {
    state.kind = optimizer_.Kind();
    state.optimizer_steps = optimizer_.steps();
    state.partition = partition_;
    state.partitions = partitions_;
    state.samples_consumed = samples_consumed_;
    state.random = GeneratorState(parameters_->device());
    optimizer_.Save(state.moments);
    return absl::OkStatus();
  });
}

absl::Status ModelReplica::CheckState(const ReplicaState& state) {
  if (state.kind != optimizer_.Kind()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the kept state is that of %s; this replica has %s", state.kind, optimizer_.Kind()));
  }
  return CheckGeneratorState(parameters_->device(), state.random);
}

absl::Status ModelReplica::LoadState(const ReplicaState& state) {
  return CatchTorch("loading the inner optimizer's state", [&]() -> absl::Status {
    const absl::Status fits = CheckState(state);
    ATOLL_RETURN_IF_ERROR(ranks_ != nullptr ? Agree(ranks_->collectives(), fits) : fits);
    if (data_) ATOLL_RETURN_IF_ERROR(SetPartition(state.partition, state.partitions));
    ATOLL_RETURN_IF_ERROR(optimizer_.Load(state.optimizer_steps, state.moments));
    SetGeneratorState(parameters_->device(), state.random);
    samples_consumed_ = state.samples_consumed;
    return absl::OkStatus();
  });
}

torch::Tensor ModelReplica::LossOf(const BatchTensors& batch, ModelMode mode) const {
  if (!batch.documents) return model_->Loss(batch.inputs, batch.targets, mode);
  return model_->LossOfDocuments(batch.inputs, batch.targets, *batch.documents, mode);
}

absl::Status ModelReplica::EvaluateBatches(uint32_t max_batches, std::vector<double>& losses,
                                           std::vector<double>& tokens) {
  ATOLL_RETURN_IF_ERROR(CheckData());
  return CatchTorch("evaluation", [&]() -> absl::Status {
    const torch::NoGradGuard no_grad;
    ValidationSamples samples(data_, sequences_);
    for (uint32_t i = rank(); i < max_batches; i += ranks()) {
      ATOLL_ASSIGN_OR_RETURN(const uint32_t sequences,
                             samples.Read(uint64_t{i} * run_.inner.batch, run_.inner.batch, batch_));
      if (sequences == 0) break;
      tokens[i] = static_cast<double>(batch_.counted_targets());
      const BatchTensors batch = BatchOnDevice(batch_, sequences, parameters_->device());
      losses[i] = LossOf(batch, ModelMode::kEvaluation).item<double>() * tokens[i];
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<EvaluationResult> ModelReplica::Evaluate(uint32_t max_batches) {
  std::vector<double> losses(max_batches), tokens(max_batches);
  const absl::Status own = EvaluateBatches(max_batches, losses, tokens);
  return CatchTorch("evaluation", [&]() -> absl::StatusOr<EvaluationResult> {
    if (ranks_ == nullptr) {
      ATOLL_RETURN_IF_ERROR(own);
    } else {
      ATOLL_RETURN_IF_ERROR(Agree(ranks_->collectives(), own));
      ranks_->collectives().Sum(losses);
      ranks_->collectives().Sum(tokens);
    }
    EvaluationResult result;
    double total = 0;
    for (uint32_t i = 0; i < max_batches; ++i) {
      total += losses[i];
      result.tokens += static_cast<uint64_t>(tokens[i]);
    }
    result.loss = total / static_cast<double>(result.tokens);
    if (!std::isfinite(result.loss)) {
      return absl::OutOfRangeError("the loss on held-out text is not finite: the model has diverged");
    }
    return result;
  });
}

absl::Status ModelReplica::Generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                    const TokenSink& take) {
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  if (text.empty()) text.push_back(0);
  for (const int64_t token : text) {
    if (token < run_.model.vocabulary()) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "prompt token %d is outside the model's vocabulary of %d", token, run_.model.vocabulary()));
  }
  return CatchTorch("generation", [&]() -> absl::Status {
    TextContinuation continuation(*model_, std::move(text), run_.model.context(), options.tokens);
    TokenSampler sampler(options.sampling);
    for (uint32_t i = 0; i < options.tokens; ++i) {
      const torch::Tensor logits = continuation.NextLogits(parameters_->device());
      ATOLL_ASSIGN_OR_RETURN(const TokenId token,
                             sampler.Draw({logits.data_ptr<float>(), static_cast<size_t>(logits.numel())}));
      if (!take(token)) break;
      continuation.Append(token);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<TokenScores>> ModelReplica::Score(std::span<const ScoreRequest> requests,
                                                             const ScoreOptions& options) {
  for (const ScoreRequest& request : requests)
    ATOLL_RETURN_IF_ERROR(CheckScoreRequest(request, run_.model.context(), run_.model.vocabulary()));
  return CatchTorch("scoring", [&]() -> absl::StatusOr<std::vector<TokenScores>> {
    auto scores = ScoreTexts(ModelFor(options.precision), requests, options, run_.model.vocabulary(),
                             run_.model.context(), parameters_->device());
    if (!scores) return absl::CancelledError("the scoring was interrupted");
    for (const TokenScores& text : *scores) {
      if (std::ranges::all_of(text.log_probabilities, [](float score) { return std::isfinite(score); }))
        continue;
      return absl::FailedPreconditionError(
          "a score is not finite: the model has diverged, or its parameters are damaged");
    }
    return *std::move(scores);
  });
}

const LanguageModel& ModelReplica::ModelFor(ScorePrecision precision) {
  if (precision == ScorePrecision::kOfRun || run_.inner.precision == Precision::kFp32) return *model_;
  if (float32_model_ == nullptr)
    float32_model_ = MakeLanguageModel(run_.model, Precision::kFp32, *parameters_);
  return *float32_model_;
}

absl::StatusOr<std::vector<TaskScore>> ModelReplica::ScoreTasks(const TaskCall& call) {
  if (!score_tasks_) return TorchReplica::ScoreTasks(call);
  return score_tasks_(*this, call);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TorchReplica>> CreateTorchReplica(const TorchReplicaOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(ReplicaData data, OpenReplicaData(options.run, options.dataset_folder));
  const auto build = [&]() -> absl::StatusOr<std::unique_ptr<TorchReplica>> {
    if (options.threads > 0) at::set_num_threads(options.threads);
    ATOLL_ASSIGN_OR_RETURN(const torch::Device device, ParseDevice(options.device));
    ATOLL_ASSIGN_OR_RETURN(const Manifest manifest, ManifestToTrain(options.run.model));
    ATOLL_ASSIGN_OR_RETURN(FlatParameters parameters, FlatParameters::Create(manifest, device));
    auto replica = std::make_unique<ModelReplica>(
        options, std::make_unique<FlatParameters>(std::move(parameters)), std::move(data));
    replica->Initialise();
    if (!options.dataset_folder.empty()) {
      ATOLL_RETURN_IF_ERROR(replica->SetPartition(options.partition, options.partitions));
      if (options.run.model.external() != nullptr) ATOLL_RETURN_IF_ERROR(replica->Try());
      replica->MeasureCost();
    }
    return replica;
  };
  return CatchTorch(
      "building the model", build,
      "parameters, gradients and the optimizer's moments take 16 bytes per parameter: free memory, "
      "use another device, or a smaller model");
}

}  // namespace atl
