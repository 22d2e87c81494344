#ifndef ATOLL_SERVER_RUN_CONFIG_SNAPSHOT_H_
#define ATOLL_SERVER_RUN_CONFIG_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/run_options.h"

namespace atl {

/// One recorded configuration. Never changed once shared: who holds a pointer holds these values for as long
/// as it likes, whatever is recorded meanwhile.
struct ConfigSnapshot {
  uint64_t version = 1;
  std::string bytes;  // serialised RunConfig
  RunOptions run;     // the same, read
};
using ConfigPtr = std::shared_ptr<const ConfigSnapshot>;

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_CONFIG_SNAPSHOT_H_
