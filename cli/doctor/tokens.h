#ifndef ATOLL_CLI_DOCTOR_TOKENS_H_
#define ATOLL_CLI_DOCTOR_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/check.h"

namespace atl {

/// What a configuration says about its data.
struct ConfiguredTokens {
  std::string tokenizer;
  uint32_t vocabulary = 0;  // of the model
};

/// A folder of token files, as far as can be seen without reading them all, and its tokenizer; each against
/// the configuration. An empty folder name: the configured tokenizer only.
std::vector<Check> CheckTokens(const std::string& folder, const std::optional<ConfiguredTokens>& configured);

/// The judgement without files, for tests. Absent: no configuration, no token files.
Check JudgeTokenizer(const std::optional<std::string>& configured,
                     const std::optional<std::string>& recorded);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_TOKENS_H_
