#include "server/run/run_settings.h"

#include <algorithm>
#include <utility>

#include "core/codec.h"

namespace atl {

ConfigPtr RunSettings::config() const {
  MutexLock lock(&core_.mutex);
  return core_.configs.newest();
}

uint64_t RunSettings::LargestPush(FragmentId fragment, uint64_t elements) const {
  MutexLock lock(&core_.mutex);
  uint64_t largest = 0;
  for (const CodecKind codec : core_.fragments[fragment.value()].push_codecs()) {
    largest = std::max(largest, CodecFor(codec).EncodedSize(elements));
  }
  return largest;
}

uint32_t RunSettings::StalenessLimit() const {
  MutexLock lock(&core_.mutex);
  uint32_t limit = core_.configs.run().round.staleness_limit;
  for (const FragmentRound& fragment : core_.fragments) {
    limit = std::max(limit, fragment.config().run.round.staleness_limit);
  }
  return limit;
}

uint64_t RunSettings::ContributionBudget() const {
  MutexLock lock(&core_.mutex);
  uint64_t largest = core_.configs.run().contribution_budget_bytes;
  for (const FragmentRound& fragment : core_.fragments) {
    for (const CodecKind codec : fragment.push_codecs()) {
      largest = std::max(largest, CodecFor(codec).EncodedSize(fragment.layout().elements));
    }
  }
  return largest;
}

void RunSettings::Configure(ConfigPtr config, Effects& effects) {
  MutexLock lock(&core_.mutex);
  core_.configs.Add(std::move(config));
  core_.members.Configured();
  core_.evaluation_assignment.Configure(EvaluationPolicyOf(core_.configs.run()));
  effects.rounds_changed = true;
}

RunModel RunSettings::Model() const {
  MutexLock lock(&core_.mutex);
  return core_.model;
}

std::vector<FragmentLayout> RunSettings::Layouts() const {
  MutexLock lock(&core_.mutex);
  std::vector<FragmentLayout> layouts;
  for (const FragmentRound& fragment : core_.fragments) layouts.push_back(fragment.layout());
  return layouts;
}

}  // namespace atl
