#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "protos/config/run_config.h"
#include "protos/config/run_config_codec.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

constexpr char kYaml[] = R"(run: {name: sample, workers: 4, rounds: 20}
model: {gpt: {layers: 2, heads: 4, width: 64, context: 32, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 50, learning_rate: 1e-3, batch: 12}
)";

}  // namespace

void FuzzYamlConfig(FuzzInput in) {
  const auto config = ParseRunConfig(in.RestText(), "input");
  if (!config.ok()) return;
  ATOLL_FUZZ_REQUIRE(ToRunOptions(*config).ok());
  const auto again = ParseRunConfig(FormatRunConfigYaml(*config), "again");
  ATOLL_FUZZ_REQUIRE(again.ok());
  ATOLL_FUZZ_REQUIRE(RunConfigHash(*again) == RunConfigHash(*config));
}

// Lines of PATH=VALUE, as `atollctl config set` takes them.
void FuzzConfigSettings(FuzzInput in) {
  static const std::string before = ParseRunConfig(kYaml, "sample").value().SerializeAsString();
  std::vector<ConfigSetting> settings;
  for (const auto line : absl::StrSplit(in.RestText(), '\n')) {
    const std::vector<std::string> sides = absl::StrSplit(line, absl::MaxSplits('=', 1));
    settings.push_back({.path = sides.front(), .value = sides.size() == 2 ? sides.back() : ""});
  }
  const RunConfigCodec codec;
  const auto after = codec.Apply(before, settings);
  if (!after.ok()) return;
  ATOLL_FUZZ_REQUIRE(codec.Parse(*after).ok());
  const auto changes = codec.Diff(before, *after);
  ATOLL_FUZZ_REQUIRE(changes.ok() && changes->size() <= settings.size());
}

// A recorded configuration, or one that came with an answer to Join.
void FuzzConfigBytes(FuzzInput in) {
  const RunConfigCodec codec;
  const std::string bytes = in.RestText();
  const auto options = codec.Parse(bytes);
  const auto same = codec.Diff(bytes, bytes);
  ATOLL_FUZZ_REQUIRE(!options.ok() || (same.ok() && same->empty()));
}

}  // namespace atl::fuzz
