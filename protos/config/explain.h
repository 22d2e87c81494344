#ifndef ATOLL_PROTOS_CONFIG_EXPLAIN_H_
#define ATOLL_PROTOS_CONFIG_EXPLAIN_H_

#include <string>

namespace atl {

/// Every field of a run's configuration with default, allowed values and meaning, for a terminal.
std::string ExplainRunConfig();

/// The same as tables in Markdown: docs/reference/configuration.md holds exactly this (a test compares).
std::string ExplainRunConfigMarkdown();

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_EXPLAIN_H_
