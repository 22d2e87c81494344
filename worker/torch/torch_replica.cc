#include "worker/torch/torch_replica.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

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
#include "worker/torch/device.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/generator_state.h"
#include "worker/torch/gradient_exchange.h"
#include "worker/torch/inner_optimizer.h"
#include "worker/torch/language_model.h"
#include "worker/torch/matmul_peak.h"
#include "worker/torch/replica_data.h"
#include "worker/torch/sampling.h"
#include "worker/torch/step_totals.h"
#include "worker/torch/text_continuation.h"
#include "worker/torch/text_scoring.h"
#include "worker/torch/torch_status.h"

namespace atl {
namespace {

class ModelReplica final : public TorchReplica {
 public:
  ModelReplica(const TorchReplicaOptions& options, std::unique_ptr<FlatParameters> parameters,
               ReplicaData data)
      : run_(options.run),
        clock_(options.clock),
        score_tasks_(options.score_tasks),
        parameters_(std::move(parameters)),
        model_(MakeLanguageModel(run_.model, run_.inner.precision, *parameters_, run_.inner.activations)),
        ranks_(options.ranks),
        optimizer_(run_.inner, *parameters_, ranks_ != nullptr ? &ranks_->collectives() : nullptr),
        data_(std::move(data.data)),
        sequences_(data.sequences) {
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
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
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
  /// A model from elsewhere computes one loss, with the largest token in it, before anybody trains it: once
  /// it has seeded a run, the run keeps it.
  absl::Status Try() const;
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
  // Sums gradients over the micro-batches of one step; returns the mean loss. `data` grows by the time that
  // reading them took.
  absl::StatusOr<double> AccumulateGradients(Duration& data);
  // Of all ranks.
  absl::StatusOr<StepTotals> TotalsOfStep(const absl::StatusOr<double>& loss);
  // Sums of the losses of the held-out batches that fall to this rank.
  absl::Status EvaluateBatches(uint32_t max_batches, std::vector<double>& losses,
                               std::vector<double>& tokens);
  struct BatchTensors {
    torch::Tensor inputs;
    torch::Tensor targets;
    std::optional<DocumentLayout> documents = std::nullopt;
  };
  BatchTensors ToDevice(const Batch& batch, int64_t rows) const;
  torch::Tensor LossOf(const BatchTensors& batch, ModelMode mode) const;
  MonoTime Now() const { return clock_ != nullptr ? clock_->Now() : MonoTime(); }
  torch::Tensor ToDevice(const std::vector<int64_t>& tokens, int64_t rows) const;

  const RunOptions run_;
  const Clock* const clock_;
  const decltype(TorchReplicaOptions::score_tasks) score_tasks_;
  const std::unique_ptr<FlatParameters> parameters_;
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
  bool gradients_dirty_ = false;  // left by a step that was not taken
  Batch batch_;
};

std::string ModelReplica::device() const {
  const torch::Device device = parameters_->device();
  if (device.is_cpu()) {
    return absl::StrCat("cpu (", Counted(static_cast<uint64_t>(at::get_num_threads()), "thread"), ")");
  }
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
                      "changed while it was "
                      "in use; `atoll-data inspect` names it",
                      samples_consumed_, largest, run_.model.vocabulary()));
}

absl::Status ModelReplica::Try() const {
  std::vector<int64_t> tokens(run_.model.context(), 0);
  tokens.back() = int64_t{run_.model.vocabulary()} - 1;
  const absl::Status tried = CatchTorch("trying the model", [&] {
    const torch::Tensor row = ToDevice(tokens, 1);
    model_->Loss(row, row, ModelMode::kTraining);
    return absl::OkStatus();
  });
  return absl::IsInternal(tried) ? absl::InvalidArgumentError(tried.message()) : tried;
}

torch::Tensor ModelReplica::ToDevice(const std::vector<int64_t>& tokens, int64_t rows) const {
  // from_blob takes a mutable pointer; the tensor is only read.
  torch::Tensor host = torch::from_blob(const_cast<int64_t*>(tokens.data()),
                                        {rows, static_cast<int64_t>(tokens.size()) / rows}, torch::kInt64);
  if (parameters_->device().is_cpu()) return host;
  // A copy from memory that is not pinned waits for everything that the device has to do before it.
  return host.pin_memory().to(parameters_->device(), /*non_blocking=*/true);
}

absl::StatusOr<double> ModelReplica::AccumulateGradients(Duration& data) {
  if (gradients_dirty_) {
    const torch::NoGradGuard no_grad;
    torch::Tensor gradients = parameters_->gradients();
    gradients.zero_();
  }
  gradients_dirty_ = true;
  // Read from the device once: every reading waits for it.
  torch::Tensor loss =
      torch::zeros({}, torch::TensorOptions().dtype(torch::kFloat64).device(parameters_->device()));
  const uint64_t of_all = uint64_t{run_.inner.batch} * ranks();
  const uint64_t first = samples_consumed_ + uint64_t{rank()} * run_.inner.batch;
  for (uint32_t micro = 0; micro < run_.inner.accumulation; ++micro) {
    const MonoTime begin = Now();
    const uint64_t position = first + micro * of_all;
    ATOLL_RETURN_IF_ERROR(training_->Read(position, run_.inner.batch, batch_, position + of_all));
    ATOLL_RETURN_IF_ERROR(CheckTokens(batch_));
    const BatchTensors tensors = ToDevice(batch_, run_.inner.batch);
    data += Now() - begin;
    const torch::Tensor micro_loss = LossOf(tensors, ModelMode::kTraining);
    if (exchange_ != nullptr && micro + 1 == run_.inner.accumulation) exchange_->Arm();
    micro_loss.backward();
    loss.add_(micro_loss.detach());
  }
  return loss.item<double>() / run_.inner.accumulation;
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

absl::StatusOr<InnerStepResult> ModelReplica::InnerStep(double learning_rate) {
  InnerStepResult result;
  const absl::StatusOr<double> loss = CatchTorch("inner step", [&]() -> absl::StatusOr<double> {
    ATOLL_RETURN_IF_ERROR(CheckData());
    // Dropout is a function of the position in the data, so that a step can be repeated.
    const uint64_t position = samples_consumed_ + uint64_t{rank()} * run_.inner.batch;
    if (model_->draws_random_numbers()) torch::manual_seed(run_.seed + (position << 16) + partition_);
    return AccumulateGradients(result.data);
  });
  return CatchTorch("inner step", [&]() -> absl::StatusOr<InnerStepResult> {
    ATOLL_ASSIGN_OR_RETURN(const StepTotals totals, TotalsOfStep(loss));
    const double scale = 1.0 / (run_.inner.accumulation * ranks());
    result.loss = totals.loss;
    result.gradient_norm = scale * std::sqrt(totals.gradient_squares);
    if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "inner step %d, sample %d: loss %g, gradient norm %g are not finite; the step was not taken; lower "
          "inner.learning_rate or start from an older version",
          optimizer_.steps() + 1, samples_consumed_, result.loss, result.gradient_norm));
    }
    optimizer_.Step(learning_rate, scale, result.gradient_norm);
    if (exchange_ != nullptr) exchange_->ShareParameters();
    gradients_dirty_ = false;
    samples_consumed_ += uint64_t{run_.inner.batch} * run_.inner.accumulation * ranks();
    result.tokens = run_.tokens_per_step() * ranks();
    return result;
  });
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

ModelReplica::BatchTensors ModelReplica::ToDevice(const Batch& batch, int64_t rows) const {
  BatchTensors tensors{.inputs = ToDevice(batch.inputs, rows), .targets = ToDevice(batch.targets, rows)};
  if (!batch.documents.empty())
    tensors.documents.emplace(ToDevice(batch.documents, rows), ToDevice(batch.positions, rows));
  return tensors;
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
      losses[i] = LossOf(ToDevice(batch_, sequences), ModelMode::kEvaluation).item<double>() * tokens[i];
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<EvaluationResult> ModelReplica::Evaluate(uint32_t max_batches) {
  std::vector<double> losses(max_batches);
  std::vector<double> tokens(max_batches);
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

absl::Status CheckOptions(const TorchReplicaOptions& options) {
  ATOLL_RETURN_IF_ERROR(CheckModelOptions(options.run.model));
  if (options.run.inner.batch == 0 || options.run.inner.accumulation == 0) {
    return absl::InvalidArgumentError("inner.batch and inner.accumulation must be positive");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TorchReplica>> CreateTorchReplica(const TorchReplicaOptions& options) {
  ATOLL_RETURN_IF_ERROR(CheckOptions(options));
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

absl::StatusOr<std::string> ResolveDevice(const std::string& device) {
  return CatchTorch("looking for devices", [&]() -> absl::StatusOr<std::string> {
    ATOLL_ASSIGN_OR_RETURN(const torch::Device found, ParseDevice(device));
    return found.str();
  });
}

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace atl
