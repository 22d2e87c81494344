#include "server/opening/new_epoch.h"

#include "common/digest.h"

namespace atl {
namespace {

/// A version that no round made: nothing was contributed to it.
RoundRecord RecordOf(const FragmentState& fragment, const VersionHashes& hashes,
                     const EpochContents& contents, const ConfigSnapshot& config, int64_t unix_ns) {
  RoundRecord record;
  record.epoch = fragment.epoch;
  record.fragment = fragment.layout.id;
  record.version = fragment.version;
  record.outer_steps = fragment.outer_steps;
  record.config_version = config.version;
  record.outer = config.run.outer;
  record.merge = config.run.merge;
  record.committed_tokens = contents.committed_tokens;
  record.closed_unix_ns = unix_ns;
  record.close_reason = contents.reason;
  record.parameters = hashes.parameters;
  record.state = hashes.state;
  record.published = hashes.published;
  return record;
}

}  // namespace

EpochStart StartEpoch(std::vector<FragmentState>& fragments, const std::vector<Version>& heads,
                      const EpochContents& contents, const ConfigSnapshot& config, int64_t unix_ns,
                      MergeEngine& engine) {
  EpochStart start{.epoch = Epoch(RandomNonZero64()),
                   .layouts = {},
                   .tensors = {},
                   .records = {},
                   .partitions = contents.partitions};
  for (size_t i = 0; i < fragments.size(); ++i) {
    FragmentState& fragment = fragments[i];
    fragment.epoch = start.epoch;
    fragment.version = Next(heads[i]);
    start.layouts.push_back(fragment.layout);
    start.tensors.push_back(fragment.view());
    start.records.push_back(RecordOf(fragment, engine.Publish(fragment).hashes, contents, config, unix_ns));
  }
  return start;
}

}  // namespace atl
