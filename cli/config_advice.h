#ifndef ATOLL_CLI_CONFIG_ADVICE_H_
#define ATOLL_CLI_CONFIG_ADVICE_H_

#include <string>
#include <vector>

#include "core/codec.h"
#include "core/run_options.h"

namespace atl {

/// Size of one value that a codec sends, with its share of the headers.
double BitsPerValue(CodecKind kind);

/// A name that is nearly a known tokenizer's is probably a slip; any other name may be that of token files.
/// At most one sentence. ConfigAdvice includes it.
std::vector<std::string> TokenizerAdvice(const std::string& name);

/// Probable mistakes in a valid configuration, each one sentence that names the field to change.
std::vector<std::string> ConfigAdvice(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIG_ADVICE_H_
