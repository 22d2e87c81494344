#include "cli/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/device_advice.h"
#include "cli/overlap_forecast.h"
#include "cli/plan_warnings.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/data_passes.h"
#include "core/disk_plan.h"
#include "core/fragment_plan.h"
#include "core/model_check.h"
#include "core/model_shape.h"
#include "core/outer_optimizer.h"
#include "core/privacy.h"

namespace atl {
namespace {

// Bytes per second of a merge with the outer step: 4.5 to 9.9 GB/s on one core
// (docs/reference/benchmarks.md).
constexpr double kMergeBytesPerSecond = 5e9;
// The synced record of a commit.
constexpr double kCommitSeconds = 0.005;
// Bytes per second of a worker's own work on its parameters, on one core (docs/reference/benchmarks.md).
constexpr double kCopyBytesPerSecond = 4e9;
constexpr double kEncodeBytesPerSecond = 1.5e9;
constexpr double kSaveBytesPerSecond = 5e8;
constexpr double kSaveSeconds = 0.01;  // of one synced file
// TCP's first window: ten segments (RFC 6928).
constexpr double kFirstWindowBytes = 14480;

/// Parts of a tensor's name and the group of those tensors: GPT-2's and Llama's names. The first part that a
/// name has counts, so that a norm inside of the attention is part of the attention.
constexpr std::pair<const char*, const char*> kGroups[] = {
    {".wte.", "token embedding"},
    {"embed_tokens", "token embedding"},
    {".wpe.", "position embedding"},
    {"attn.", "attention"},
    {".mlp.", "mlp"},
    {".ln_", "normalisation"},
    {"norm", "normalisation"},
    {"lm_head", "output head"},
};

const char* GroupOf(const TensorSpec& tensor) {
  for (const auto& [part, group] : kGroups) {
    if (absl::StrContains(tensor.name, part)) return group;
  }
  return "other";
}

/// In the order of the model.
std::vector<std::pair<std::string, uint64_t>> Groups(const Manifest& manifest) {
  std::vector<std::pair<std::string, uint64_t>> groups;
  for (const TensorSpec& tensor : manifest.tensors) {
    const std::string name = GroupOf(tensor);
    auto found = std::ranges::find(groups, name, &std::pair<std::string, uint64_t>::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {name, 0});
    found->second += tensor.elements();
  }
  return groups;
}

PlannedDisk PlanDisk(const RunOptions& run, const RunPlan& plan) {
  PlannedDisk disk;
  disk.directory_bytes = EmptyDirectoryBytes(run.shards);
  disk.reserve_bytes = kDiskReserveBytes;
  disk.version_bytes = plan.elements * sizeof(float) * (1 + OuterStateVectors(run.outer.optimizer));
  disk.versions = run.keep_versions + 1;
  // Contributions of the rounds after the oldest retained version, of the version being stored, and of the
  // open round.
  disk.contribution_bytes = (run.keep_versions + uint64_t{1}) * plan.assumptions.workers * plan.push_bytes;
  if (run.checkpoint_every > 0) {
    const uint64_t made = plan.rounds / run.checkpoint_every;
    disk.checkpoints = std::min<uint64_t>(made, run.checkpoint_keep);
    disk.replaced = made > disk.checkpoints ? 1 : 0;
    if (run.checkpoint_keep_every > 0) disk.kept_checkpoints = made / run.checkpoint_keep_every;
    disk.checkpoints += disk.kept_checkpoints;
    disk.checkpoint_bytes = disk.version_bytes * disk.versions + disk.contribution_bytes;
  }
  return disk;
}

/// Seconds in which all workers move `bytes` each at full speed: each over its own link, together over the
/// coordinator's link.
double OnTheLink(const PlanAssumptions& a, uint64_t bytes) {
  const double bits = 8 * static_cast<double>(bytes);
  return std::max(bits / a.bandwidth_bits_per_s, bits * a.workers / a.coordinator_bandwidth_bits_per_s);
}

/// Extra time of a connection that was idle. Slow start sends ten packets, then twice as many per round trip
/// (RFC 6928), until the link is full or all data is sent.
double SlowStart(const PlanAssumptions& a, uint64_t bytes) {
  const double full = OnTheLink(a, bytes);
  const double rate = static_cast<double>(bytes) / std::max(full, 1e-12);
  const double growing_until = std::min(rate * a.latency_s, static_cast<double>(bytes));
  const double doublings = std::max(0.0, std::log2(growing_until / kFirstWindowBytes));
  // These round trips together send about as much as one at full speed.
  return a.latency_s * std::max(0.0, doublings - 1);
}

/// Like OnTheLink, on a connection that was idle, plus one round trip.
double Transfer(const PlanAssumptions& a, uint64_t bytes) {
  return a.latency_s + OnTheLink(a, bytes) + SlowStart(a, bytes);
}

/// A worker measures and encodes contributions, writes them and the residual to disk, and decodes and applies
/// published versions. In overlapped mode, exchange threads do most of this.
double OwnSeconds(const RunOptions& run, const RunPlan& plan) {
  const auto bytes = static_cast<double>(plan.elements * sizeof(float));
  const double moved = bytes / kCopyBytesPerSecond;
  if (run.sync.mode == SyncMode::kOverlapped) return 3 * moved;  // copies out, and in with blending
  const double written = bytes + static_cast<double>(plan.push_bytes);
  return 3 * moved + bytes / kEncodeBytesPerSecond + written / kSaveBytesPerSecond +
         kSaveSeconds * run.sync.fragments;
}

double EvaluateSeconds(const RunOptions& run, const PlanAssumptions& a) {
  if (run.evaluation_every == 0 || run.evaluated_by != EvaluatedBy::kWorker) return 0;
  const double micro_step = a.step_s / std::max(run.inner.accumulation, 1U);
  const double batch = a.evaluation_batch_s > 0 ? a.evaluation_batch_s : micro_step / 3;
  return batch * run.evaluation_batches / run.evaluation_every;
}

double SecondsBetweenPushes(const RunOptions& run, const RunPlan& plan, const PlannedTime& time) {
  const PlanAssumptions& a = plan.assumptions;
  const uint64_t push_bytes = plan.push_bytes / run.sync.fragments;
  const uint64_t pull_bytes = plan.pull_bytes / run.sync.fragments;
  return ForecastSecondsBetweenPushes({.steps = run.inner.steps,
                                       .fragments = run.sync.fragments,
                                       .delay_steps = run.sync.delay_steps,
                                       .max_in_flight = run.sync.max_in_flight,
                                       .workers = a.workers,
                                       .step_s = time.busy_s() / run.inner.steps,
                                       .push_bytes = static_cast<double>(push_bytes),
                                       .pull_bytes = static_cast<double>(pull_bytes),
                                       .worker_rate = a.bandwidth_bits_per_s / 8,
                                       .coordinator_rate = a.coordinator_bandwidth_bits_per_s / 8,
                                       .latency_s = a.latency_s,
                                       .push_start_s = SlowStart(a, push_bytes),
                                       .pull_start_s = SlowStart(a, pull_bytes),
                                       .merge_s = time.merge_s});
}

PlannedTime PlanTime(const RunOptions& run, const RunPlan& plan) {
  const PlanAssumptions& a = plan.assumptions;
  PlannedTime time;
  time.overlapped = run.sync.mode == SyncMode::kOverlapped;
  const uint64_t parts = time.overlapped ? run.sync.fragments : 1;
  time.pull_s = Transfer(a, plan.pull_bytes / parts);
  time.push_s = Transfer(a, plan.push_bytes / parts);
  time.link_s = OnTheLink(a, std::max(plan.pull_bytes, plan.push_bytes));
  // Reads contributions; reads and writes theta and each state vector.
  const uint64_t vectors = 2 + 2 * OuterStateVectors(run.outer.optimizer);
  const double moved = static_cast<double>(plan.push_bytes) * a.workers +
                       static_cast<double>(plan.elements * sizeof(float) * vectors);
  time.merge_s = moved / kMergeBytesPerSecond / static_cast<double>(parts) + kCommitSeconds;
  if (a.step_s <= 0) return time;
  time.compute_s = a.step_s * run.inner.steps;
  time.own_s = OwnSeconds(run, plan);
  time.evaluate_s = EvaluateSeconds(run, a);
  if (time.overlapped) time.between_pushes_s = SecondsBetweenPushes(run, plan, time);
  return time;
}

std::optional<PlannedPrivacy> PlanPrivacy(const RunOptions& run, const RunPlan& plan) {
  const PrivacyOptions& privacy = run.privacy;
  if (!privacy.noisy()) return std::nullopt;
  PlannedPrivacy planned{.clip_norm = privacy.clip_norm,
                         .noise_multiplier = privacy.noise_multiplier,
                         .delta = privacy.delta,
                         .epsilon = EpsilonOf(PlannedLocalRho(privacy, plan.rounds), privacy.delta)};
  if (IsFixedSum(run.merge)) {
    planned.published_epsilon =
        EpsilonOf(PlannedPublishedRho(privacy, plan.rounds, plan.assumptions.workers), privacy.delta);
  }
  return planned;
}

/// With the number of parameters that only the caller knows.
absl::StatusOr<RunOptions> WithParameters(RunOptions run, uint64_t parameters) {
  ExternalOptions* const external = run.model.external();
  if (external == nullptr) {
    if (parameters == 0) return run;
    return absl::InvalidArgumentError(
        "--parameters is for an external model; the configuration says how many this model has");
  }
  if (parameters > 0) external->parameters = parameters;
  if (external->parameters > 0) return run;
  return absl::InvalidArgumentError(absl::StrFormat(
      "nobody knows how many parameters the model has before a worker joins; give --parameters "
      "N, or set %s.parameters",
      ShapeOf(run.model)->section()));
}

/// Workers of so many ranks in a run whose run.workers counts ranks.
absl::StatusOr<uint32_t> WorkersOf(const RunOptions& run, uint32_t ranks) {
  if (run.workers % ranks == 0) return run.workers / ranks;
  return absl::InvalidArgumentError(absl::StrFormat(
      "run.workers is %d and counts all ranks of all workers, but %d is no multiple of --ranks %d: set "
      "run.workers to the number of all ranks, or give --workers with the number of islands",
      run.workers, run.workers, ranks));
}

/// Fills in the assumptions, and how fast such workers spend the run's tokens.
absl::Status PlanTokens(const RunOptions& run, RunPlan& plan) {
  PlanAssumptions& a = plan.assumptions;
  if (a.ranks == 0) return absl::InvalidArgumentError("a worker has at least one rank");
  const ExternalOptions* const external = run.model.external();
  if (a.ranks > 1 && external != nullptr && external->script.empty()) {
    return absl::InvalidArgumentError(
        "--ranks is for atoll-worker, which does not train an external model: a worker in Python counts as "
        "one, whatever the number of its processes");
  }
  if (a.workers == 0) {
    ATOLL_ASSIGN_OR_RETURN(a.workers, WorkersOf(run, a.ranks));
  }
  plan.run_rounds = run.rounds;
  plan.inner_steps = run.inner.steps;
  plan.total_tokens = run.total_tokens();
  plan.step_tokens = run.tokens_per_step();
  const uint64_t of_a_rank = std::max(plan.step_tokens * plan.inner_steps, uint64_t{1});
  const uint64_t ranks = uint64_t{a.workers} * a.ranks;
  // The tokens of the configured ranks fit 64 bits; those of any number may not.
  plan.round_tokens = std::min(of_a_rank, std::numeric_limits<uint64_t>::max() / ranks) * ranks;
  const uint64_t shares = (plan.total_tokens + of_a_rank - 1) / of_a_rank;
  plan.rounds = (shares + ranks - 1) / ranks;
  return absl::OkStatus();
}

struct Unit {
  const char* name;
  double factor;
};

struct Allowed {
  double least;
  double most;
  const char* text;
};

/// A number and one of the units, with or without a space between them. Ignores case.
absl::StatusOr<double> ParseQuantity(const std::string& text, const std::vector<Unit>& units,
                                     const Allowed& allowed, const char* example) {
  const std::string lower = absl::AsciiStrToLower(std::string(absl::StripAsciiWhitespace(text)));
  const size_t end = lower.find_first_not_of("0123456789.e+-");
  // In "1e9bit/s", the e belongs to the number; no unit begins with an e.
  double number = 0;
  if (end != std::string::npos && absl::SimpleAtod(lower.substr(0, end), &number) && number > 0 &&
      number < 1e18) {
    const std::string unit(absl::StripAsciiWhitespace(lower.substr(end)));
    for (const Unit& known : units) {
      if (unit != known.name) continue;
      const double quantity = number * known.factor;
      if (quantity >= allowed.least && quantity <= allowed.most) return quantity;
      return absl::InvalidArgumentError(absl::StrFormat("'%s' is not between %s", text, allowed.text));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("'%s' is not a valid quantity; for example %s", text, example));
}

}  // namespace

double PlannedTime::round_s() const {
  return overlapped ? std::max(between_pushes_s, busy_s()) : exchange_s() + busy_s();
}

std::string PlannedDisk::remedy() const {
  std::vector<std::string> remedies = {"a larger disk"};
  if (kept_checkpoints > 0) {
    remedies.push_back(
        absl::StrFormat("a larger checkpoint.keep_every, which keeps %s permanently (0 keeps none)",
                        Counted(kept_checkpoints, "checkpoint")));
  }
  if (checkpoints > kept_checkpoints + 1) remedies.push_back("fewer checkpoint.keep");
  if (versions > 2) remedies.push_back("fewer checkpoint.keep_versions");
  return absl::StrJoin(remedies, ", or ");
}

absl::StatusOr<RunPlan> MakePlan(const RunOptions& configured, const PlanAssumptions& assumptions) {
  ATOLL_ASSIGN_OR_RETURN(const RunOptions run, WithParameters(configured, assumptions.parameters));
  ATOLL_ASSIGN_OR_RETURN(const auto layouts, LayOutModel(run));
  RunPlan plan;
  plan.name = run.name;
  plan.assumptions = assumptions;
  ATOLL_RETURN_IF_ERROR(PlanTokens(run, plan));
  if (plan.assumptions.coordinator_bandwidth_bits_per_s <= 0) {
    plan.assumptions.coordinator_bandwidth_bits_per_s = assumptions.bandwidth_bits_per_s;
  }
  if (const auto manifest = ShapeOf(run.model)->MakeManifest()) {
    plan.parameters = manifest->elements();
    plan.groups = Groups(*manifest);
    plan.token_operations = ShapeOf(run.model)->TrainingFlopsPerToken();
  } else {
    plan.parameters = run.model.external()->parameters;
  }
  uint64_t largest = 0;
  for (const FragmentLayout& fragment : layouts) {
    plan.elements += fragment.elements;
    largest = std::max(largest, fragment.elements);
  }
  plan.push_bytes = CodecFor(run.push_codec).EncodedSize(plan.elements);
  plan.pull_bytes = CodecFor(run.pull_delta.value_or(run.pull_codec)).EncodedSize(plan.elements);
  plan.data_parallel_bytes = 2 * sizeof(float) * plan.parameters * run.inner.steps;
  MemoryPlanInput memory = MemoryPlanInputOf(run, plan.elements, largest);
  memory.workers = plan.assumptions.workers;
  plan.coordinator = PlanCoordinatorMemory(memory);
  plan.bounds = BoundsWithin(RecommendedMemoryLimit(plan.coordinator), plan.coordinator);
  if (run.model.external() == nullptr) {
    plan.worker = PlanWorkerMemory(run, plan.elements, largest);
    plan.devices = DeviceAdvice(run, plan.parameters, plan.elements, plan.assumptions.ranks);
  }
  plan.disk = PlanDisk(run, plan);
  plan.time = PlanTime(run, plan);
  if (assumptions.step_s > 0) {
    const double exchange = 2 * Transfer(plan.assumptions, sizeof(float) * plan.parameters);
    plan.data_parallel_utilisation = assumptions.step_s / (assumptions.step_s + exchange);
  }
  plan.privacy = PlanPrivacy(run, plan);
  if (!assumptions.texts.empty()) {
    plan.passes = PassesOverData(ReadersOf(run, plan), assumptions.texts);
  }
  plan.warnings = PlanWarnings(run, plan);
  return plan;
}

absl::StatusOr<double> ParseBandwidth(const std::string& text) {
  static const std::vector<Unit> units = {{"bit/s", 1},     {"kbit/s", 1e3}, {"mbit/s", 1e6}, {"gbit/s", 1e9},
                                          {"tbit/s", 1e12}, {"kb/s", 8e3},   {"mb/s", 8e6},   {"gb/s", 8e9}};
  static constexpr Allowed kAllowed = {1e3, 1e15, "1kbit/s and 1000Tbit/s"};
  return ParseQuantity(text, units, kAllowed, "100Mbit/s, 10Gbit/s or 50MB/s");
}

absl::StatusOr<double> ParseSpan(const std::string& text, const char* example) {
  static const std::vector<Unit> units = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                                          {"min", 60},  {"h", 3600},  {"d", 86400}};
  static constexpr Allowed kAllowed = {1e-9, 36500.0 * 86400, "1 ns and 36500 days"};
  return ParseQuantity(text, units, kAllowed, example);
}

}  // namespace atl
