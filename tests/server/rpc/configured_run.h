#ifndef ATOLL_TESTS_SERVER_RPC_CONFIGURED_RUN_H_
#define ATOLL_TESTS_SERVER_RPC_CONFIGURED_RUN_H_

#include <string>

#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/server/test_run.h"

namespace atl {

/// SmallRun's run for two workers, as a file says it.
inline constexpr char kSmallRunYaml[] = R"(
run: {name: small, workers: 2, rounds: 100}
model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 8}
inner: {steps: 2, learning_rate: 1e-3, warmup_steps: 10, batch: 4}
codec: {push: fp32, pull_delta: none}
evaluation: {tasks: [hellaswag, mmlu], tasks_every: 1}
checkpoint: {shards: 2}
)";

/// SmallRun with the configuration of `yaml`, for coordinators whose configuration is looked at or changed.
inline CoordinatorOptions ConfiguredRun(const std::string& yaml = kSmallRunYaml) {
  CoordinatorOptions options = SmallRun();
  const auto config = ParseRunConfig(yaml, "test");
  EXPECT_TRUE(config.ok()) << config.status();
  options.config_bytes = config->SerializeAsString();
  options.run = *ToRunOptions(*config);
  return options;
}

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_RPC_CONFIGURED_RUN_H_
