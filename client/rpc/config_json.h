#ifndef ATOLL_CLIENT_RPC_CONFIG_JSON_H_
#define ATOLL_CLIENT_RPC_CONFIG_JSON_H_

#include <string>

namespace atl {

/// A configuration as Join brings it (JoinReply::config_bytes) as JSON with every field, by the names of the
/// YAML file.
/// "{}" when the bytes are of no configuration.
std::string ConfigJson(const std::string& config_bytes);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CONFIG_JSON_H_
