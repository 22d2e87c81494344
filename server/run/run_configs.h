#ifndef ATOLL_SERVER_RUN_RUN_CONFIGS_H_
#define ATOLL_SERVER_RUN_RUN_CONFIGS_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/codec.h"
#include "server/run/config_snapshot.h"

namespace atl {

/// The configuration in force, and what pushes are encoded with under it and under those before it that open
/// rounds have. The one home of the run's options: readers keep a pointer to this. Not
/// thread-safe.
class RunConfigs {
 public:
  explicit RunConfigs(ConfigPtr newest, const std::vector<ConfigPtr>& earlier = {})
      : newest_(std::move(newest)) {
    for (const ConfigPtr& config : earlier) push_codecs_[config->version] = config->run.push_codec;
    push_codecs_[newest_->version] = newest_->run.push_codec;
  }

  const ConfigPtr& newest() const { return newest_; }
  const RunOptions& run() const { return newest_->run; }
  /// It was recorded, and is in force from here on.
  void Add(ConfigPtr config) {
    push_codecs_[config->version] = config->run.push_codec;
    newest_ = std::move(config);
  }

  /// Of the configurations from this version on.
  std::set<CodecKind> PushCodecsFrom(uint64_t version) const {
    std::set<CodecKind> codecs;
    for (auto it = push_codecs_.lower_bound(version); it != push_codecs_.end(); ++it)
      codecs.insert(it->second);
    return codecs;
  }

 private:
  ConfigPtr newest_;
  std::map<uint64_t, CodecKind> push_codecs_;  // by version
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_CONFIGS_H_
