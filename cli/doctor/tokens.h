#ifndef ATOLL_CLI_DOCTOR_TOKENS_H_
#define ATOLL_CLI_DOCTOR_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/doctor/check.h"
#include "core/data_passes.h"

namespace atl {

/// The settings of a configuration that concern its data.
struct ConfiguredTokens {
  std::string tokenizer;
  uint32_t vocabulary = 0;            // of the model
  std::string section = "model.gpt";  // of the model in the configuration, for messages
};

/// Checks a folder of token files and its tokenizer against the configuration, without reading all files.
/// With an empty folder name, checks only the configured tokenizer.
std::vector<Check> CheckTokens(const std::string& folder, const std::optional<ConfiguredTokens>& configured);

/// The training text of a folder of token files, or the texts of a mixture with their shares. NotFound if
/// there is none, or if a dataset of the mixture is missing.
absl::StatusOr<std::vector<TextShare>> TextsOf(const std::string& folder);

/// The same for a run with an external model: only its workers know what their data is. A folder of token
/// files is checked without the configuration, which has no tokenizer.
std::vector<Check> CheckDataOfOwnLoop(const std::string& folder);

/// The verdict without files, for tests. Absent arguments: no configuration, no token files.
Check JudgeTokenizer(const std::optional<std::string>& configured,
                     const std::optional<std::string>& recorded);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_TOKENS_H_
