#ifndef ATOLL_PROTOS_CONFIG_RUN_CONFIG_CODEC_H_
#define ATOLL_PROTOS_CONFIG_RUN_CONFIG_CODEC_H_

#include <span>
#include <string>
#include <vector>

#include "core/config_codec.h"

namespace atl {

/// Recorded configurations are serialised atoll.v1.RunConfig.
class RunConfigCodec final : public ConfigCodec {
 public:
  absl::StatusOr<RunOptions> Parse(const std::string& bytes) const override;
  absl::StatusOr<std::string> Apply(const std::string& bytes,
                                    std::span<const ConfigSetting> settings) const override;
  absl::StatusOr<std::vector<ConfigChange>> Diff(const std::string& before,
                                                 const std::string& after) const override;
};

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_RUN_CONFIG_CODEC_H_
