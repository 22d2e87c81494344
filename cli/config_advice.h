#ifndef ATOLL_CLI_CONFIG_ADVICE_H_
#define ATOLL_CLI_CONFIG_ADVICE_H_

#include <string>
#include <vector>

#include "core/codec.h"
#include "core/run_options.h"

namespace atl {

/// Size of one value that a codec sends, with its share of the headers.
double BitsPerValue(CodecKind kind);

/// Probable mistakes in a valid configuration, each one sentence that names the field to change.
std::vector<std::string> ConfigAdvice(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIG_ADVICE_H_
