#ifndef ATOLL_TESTS_PROTOS_SAMPLE_CONFIG_H_
#define ATOLL_TESTS_PROTOS_SAMPLE_CONFIG_H_

#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"

namespace atl {

// The smallest configuration there is. Lines are counted by the tests: `run:` is line 1.
inline constexpr char kSampleYaml[] = R"(run:
  name: sample
  workers: 4
  rounds: 20
model:
  gpt:
    layers: 2
    heads: 4
    width: 64
    context: 32
    vocabulary: 256
data:
  tokenizer: bytes
inner:
  steps: 50
  learning_rate: 1e-3
  batch: 12
)";

/// The sample with one piece of text replaced, which must occur.
inline std::string Sample(const std::string& from, const std::string& to) {
  const std::string out = absl::StrReplaceAll(kSampleYaml, {{from, to}});
  EXPECT_NE(out, kSampleYaml) << from;
  return out;
}

/// The sample with more at its end, from line 18 on.
inline std::string SampleAnd(const std::string& more) { return kSampleYaml + more; }

/// What the parser says of a text, without the place; empty when it takes it.
inline std::string ComplaintAbout(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "s.yaml");
  if (config.ok()) return "";
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(config.status().message());
  return message.substr(message.find(": ") + 2);
}

}  // namespace atl

#endif  // ATOLL_TESTS_PROTOS_SAMPLE_CONFIG_H_
