#ifndef ATOLL_CORE_CONFIG_CODEC_H_
#define ATOLL_CORE_CONFIG_CODEC_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run_options.h"

namespace atl {

/// One value to set, spelled as in the run's YAML: round.deadline_s, 120.
struct ConfigSetting {
  std::string path;
  std::string value;
};

/// One field in which two configurations differ, with its values spelled as in YAML.
struct ConfigChange {
  std::string path;
  std::string before;
  std::string after;
  friend bool operator==(const ConfigChange&, const ConfigChange&) = default;
};

/// "round.deadline_s: 600 -> 120"
inline std::string ConfigChangeText(const ConfigChange& change) {
  return change.path + ": " + change.before + " -> " + change.after;
}

/// Reads and changes recorded configurations, which are opaque bytes for other code. Stateless, thread-safe.
/// Implemented in protos/config.
class ConfigCodec {
 public:
  virtual ~ConfigCodec() = default;

  /// DataLoss if the bytes are not a configuration; InvalidArgument names the fields that are out of range.
  virtual absl::StatusOr<RunOptions> Parse(const std::string& bytes) const = 0;

  /// The configuration with these values set, checked as a whole. InvalidArgument, one line per problem,
  /// names path, value and allowed values; also for a path that is unknown or given twice.
  virtual absl::StatusOr<std::string> Apply(const std::string& bytes,
                                            std::span<const ConfigSetting> settings) const = 0;

  /// In the order of the schema.
  virtual absl::StatusOr<std::vector<ConfigChange>> Diff(const std::string& before,
                                                         const std::string& after) const = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_CONFIG_CODEC_H_
