#include "cli/device_advice.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"
#include "core/rank_limits.h"

namespace atl {
namespace {

/// Memory of common GPUs.
constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr uint64_t kDevices[] = {8 * kGib,  12 * kGib, 16 * kGib, 24 * kGib,
                                 32 * kGib, 48 * kGib, 80 * kGib, 141 * kGib};
constexpr uint64_t kLargest = kDevices[std::size(kDevices) - 1];
// What the driver, kernels and the allocator's gaps leave of it.
constexpr double kUsable = 0.9;

uint64_t Usable(uint64_t device) { return static_cast<uint64_t>(kUsable * static_cast<double>(device)); }

/// The smallest device with this much; 0: none has.
uint64_t SmallestFor(uint64_t bytes) {
  const auto* const fits =
      std::ranges::find_if(kDevices, [&](uint64_t device) { return bytes <= Usable(device); });
  return fits == std::end(kDevices) ? 0 : *fits;
}

WorkerMemory WithoutEncoders(WorkerMemory memory) {
  memory.device_encoders = memory.pinned = 0;
  return memory;
}

/// A model with more layers: its activations grow with its parameters.
std::string Suffices(uint64_t device, const WorkerMemory& memory, uint64_t parameters, uint64_t ranks) {
  const double share =
      static_cast<double>(Usable(device)) / static_cast<double>(OnDeviceOfRank(memory, ranks));
  return absl::StrFormat("up to about %s parameters", HumanCount(share * static_cast<double>(parameters)));
}

/// Settings of a worker that take less of its device than the run's.
struct Setting {
  RunOptions run;
  std::vector<std::string> changes;
};

/// The run's own setting first, then those with fewer activations, each only if it changes something.
std::vector<Setting> Settings(const RunOptions& run) {
  std::vector<Setting> all = {{.run = run, .changes = {}}};
  if (run.inner.activations == Activations::kKept) {
    Setting recomputed = all.front();
    recomputed.run.inner.activations = Activations::kRecomputed;
    recomputed.changes.emplace_back("inner.recompute_activations: true");
    all.push_back(recomputed);
  }
  for (size_t i = 0, count = all.size(); i < count && run.inner.batch > 1; ++i) {
    Setting smaller = all[i];
    smaller.run.inner.batch = 1;
    smaller.changes.emplace_back("a smaller inner.batch");
    all.push_back(smaller);
  }
  return all;
}

/// What of the settings makes the model fit the largest device, the fewest ranks first, from `planned` on.
std::string Remedy(const RunOptions& run, uint64_t elements, uint64_t planned) {
  std::vector<Setting> settings = Settings(run);
  const uint64_t most = std::max<uint64_t>(kDefaultMaxRanks, planned);
  uint64_t least = 0;
  for (uint64_t ranks = planned; ranks <= most; ranks *= 2) {
    for (Setting& setting : settings) {
      const WorkerMemory memory = PlanWorkerMemory(setting.run, elements, elements);
      least = OnDeviceOfRank(WithoutEncoders(memory), ranks);
      if (least > Usable(kLargest)) continue;
      std::vector<std::string>& changes = setting.changes;
      if (ranks > planned) {
        changes.push_back(absl::StrFormat("%d GPUs for one worker (--ranks %d: %s on each)", ranks, ranks,
                                          HumanBytes(least)));
      }
      if (OnDeviceOfRank(memory, ranks) > Usable(kLargest)) {
        changes.emplace_back("atoll-worker --encode-on-cpu");
      }
      return absl::StrCat("use ", absl::StrJoin(changes, ", and "));
    }
  }
  return absl::StrFormat(
      "with the least activations, --encode-on-cpu and --ranks %d, each would still need %s: use a smaller "
      "model",
      most, HumanBytes(least));
}

}  // namespace

uint64_t OptimizerOfRank(const WorkerMemory& memory, uint64_t ranks) {
  return (memory.optimizer + ranks - 1) / ranks;
}

uint64_t OnDeviceOfRank(const WorkerMemory& memory, uint64_t ranks) {
  return memory.on_device() - memory.optimizer + OptimizerOfRank(memory, ranks);
}

std::string DeviceAdvice(const RunOptions& run, uint64_t parameters, uint64_t elements, uint64_t ranks) {
  const WorkerMemory memory = PlanWorkerMemory(run, elements, elements);
  const WorkerMemory bare = WithoutEncoders(memory);
  const uint64_t whole = SmallestFor(OnDeviceOfRank(memory, ranks));
  const uint64_t without = SmallestFor(OnDeviceOfRank(bare, ranks));
  const char* const suffices = ranks > 1 ? "suffices for each rank" : "suffices";
  if (without == 0) {
    return absl::StrFormat("no single GPU %s: the largest here has %s; %s", suffices, HumanBytes(kLargest),
                           Remedy(run, elements, ranks));
  }
  if (whole == 0) {
    return absl::StrFormat("a GPU of %s %s with atoll-worker --encode-on-cpu, %s", HumanBytes(without),
                           suffices, Suffices(without, bare, parameters, ranks));
  }
  std::string text = absl::StrFormat("a GPU of %s %s, %s", HumanBytes(whole), suffices,
                                     Suffices(whole, memory, parameters, ranks));
  if (without < whole) {
    absl::StrAppend(&text, "; one of ", HumanBytes(without), " with atoll-worker --encode-on-cpu");
  }
  return text;
}

}  // namespace atl
