#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/command_line/help.h"
#include "common/status.h"
#include "core/run_options.h"
#include "core/token_format.h"
#include "worker/data/batches.h"
#include "worker/data/commands/command.h"
#include "worker/data/training_data.h"

namespace atl {
namespace {

constexpr char kOrderHelp[] =
    "Print which samples a worker of a run trains on, in order: one line 'part sample first_token' each";
constexpr char kOrderNotes[] =
    "A part is a dataset of a mixture, counted from 0; without a mixture it is 0. A sample is counted within "
    "its part, and its first token within the part's training text. docs/reference/data_order.md describes "
    "the order.";

struct OrderFlags {
  std::string folder, sequences = "within_files";
  uint32_t context = 0, partition = 0, partitions = 1;
  uint64_t seed = 1337, first = 0, samples = 10;
};

absl::Status RunOrder(const OrderFlags& flags) {
  if (flags.partition >= flags.partitions) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--partition %d: expected a number below --partitions %d", flags.partition, flags.partitions));
  }
  const SequenceBounds bounds =
      flags.sequences == "within_files" ? SequenceBounds::kWithinFiles : SequenceBounds::kAcrossFiles;
  ATOLL_ASSIGN_OR_RETURN(TrainingData data, TrainingData::Open(flags.folder, {.vocabulary = kMaxVocabulary,
                                                                              .context = flags.context,
                                                                              .tokenizer = "",
                                                                              .section = "model",
                                                                              .sequences = bounds}));
  const TrainingSamples samples(std::make_shared<const TrainingData>(std::move(data)),
                                {.context = flags.context, .bounds = bounds}, flags.seed, flags.partition,
                                flags.partitions);
  for (uint64_t position = flags.first; position < flags.first + flags.samples; ++position) {
    const SamplePlace place = samples.At(position);
    absl::PrintF("%d %d %d\n", place.part, place.sample, place.first_token);
  }
  return absl::OkStatus();
}

}  // namespace

DataCommand AddOrderCommand(CLI::App& app) {
  CLI::App* const order = app.add_subcommand("order", kOrderHelp);
  const auto flags = std::make_shared<OrderFlags>();
  order->add_option("folder", flags->folder, "Dataset folder or mixture")->required();
  order->add_option("--context", flags->context, "Tokens of a sample, as in the model's section of the run")
      ->required()
      ->check(CLI::Range(1u, 1u << 20));
  order->add_option("--seed", flags->seed, "run.seed")->capture_default_str();
  order->add_option("--sequences", flags->sequences, "data.sequences")
      ->check(CLI::IsMember({"within_files", "across_files"}))
      ->capture_default_str();
  order->add_option("--partition", flags->partition, "Partition of the worker")->capture_default_str();
  order->add_option("--partitions", flags->partitions, "data.partitions")
      ->check(CLI::Range(1u, 1u << 16))
      ->capture_default_str();
  order->add_option("--first", flags->first, "First position of the partition to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 48))
      ->capture_default_str();
  order->add_option("--samples", flags->samples, "Number of samples to print")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  SetHelp(*order, {.examples = {{"atoll-data order data/book --context 256 --seed 1337 --partition 2 "
                                 "--partitions 64 --first 1000"}},
                   .exit_codes = {ExitCode::kStorage, ExitCode::kBadFiles},
                   .notes = kOrderNotes});
  return {order, [flags] { return RunOrder(*flags); }};
}

}  // namespace atl
