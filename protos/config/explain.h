#ifndef ATOLL_PROTOS_CONFIG_EXPLAIN_H_
#define ATOLL_PROTOS_CONFIG_EXPLAIN_H_

#include <string>

namespace atl {

/// Lists every field of a run's configuration with default, allowed values and meaning, for a terminal. With
/// a path, such as "round", "model" or "round.quorum", only that section or field; empty if there is none.
std::string ExplainRunConfig(const std::string& path = "");

/// The same list as Markdown tables. docs/reference/configuration.md contains exactly this text (a test
/// compares them).
std::string ExplainRunConfigMarkdown();

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_EXPLAIN_H_
