#ifndef ATOLL_CLI_DOCTOR_CHECK_H_
#define ATOLL_CLI_DOCTOR_CHECK_H_

#include <string>
#include <vector>

namespace atl {

enum class Verdict { kOk, kWarn, kFail };

/// One line of `atollctl doctor`.
struct Check {
  std::string name;
  Verdict verdict = Verdict::kOk;
  std::string text;    // what was found
  std::string advice;  // what to do; empty if nothing
};

inline Check Ok(std::string name, std::string text) {
  return {std::move(name), Verdict::kOk, std::move(text), ""};
}
inline Check Warn(std::string name, std::string text, std::string advice) {
  return {std::move(name), Verdict::kWarn, std::move(text), std::move(advice)};
}
inline Check Fail(std::string name, std::string text, std::string advice) {
  return {std::move(name), Verdict::kFail, std::move(text), std::move(advice)};
}

std::vector<std::string> RenderChecks(const std::vector<Check>& checks);
/// {"checks": [{"name", "verdict": "ok|warn|fail", "text", "advice"}], "failed": n, "warnings": n}
std::string ChecksToJson(const std::vector<Check>& checks);
size_t CountVerdict(const std::vector<Check>& checks, Verdict verdict);

}  // namespace atl

#endif  // ATOLL_CLI_DOCTOR_CHECK_H_
