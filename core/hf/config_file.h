#ifndef ATOLL_CORE_HF_CONFIG_FILE_H_
#define ATOLL_CORE_HF_CONFIG_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/hf/layout.h"
#include "core/hf/values.h"

// config.json and generation_config.json of transformers.

namespace atl {

inline constexpr uint64_t kMaxHfConfigBytes = uint64_t{1} << 20;

/// Compares a config.json with the table of the run's model. InvalidArgument names `source` and every field
/// that contradicts, with its value, the run's, and the run's setting. Fields of no meaning for the table are
/// not looked at.
absl::Status CheckHfConfig(std::string_view text, const HfLayout& layout, std::string_view source);

/// The tokens that begin and end a text; nullopt or empty: unknown, or none.
struct HfTokenIds {
  std::optional<int64_t> begin = {};  // bos_token_id
  std::vector<int64_t> ends = {};     // eos_token_id: each of them ends a text
  friend bool operator==(const HfTokenIds&, const HfTokenIds&) = default;
};

/// Those of a config.json or generation_config.json. Nothing from a text that is not such a file, no id that
/// is negative or not below `vocabulary`, and at most 256 of them.
HfTokenIds TokenIdsOf(std::string_view text, uint32_t vocabulary);

/// The contents of config.json, for tensors of this dtype.
std::string HfConfigText(const HfLayout& layout, FileDtype dtype, const HfTokenIds& ids);

/// The contents of generation_config.json.
std::string HfGenerationConfigText(const HfTokenIds& ids);

}  // namespace atl

#endif  // ATOLL_CORE_HF_CONFIG_FILE_H_
