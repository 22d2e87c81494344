#include "protos/config/run_config.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "protos/config/assumed_fields.h"
#include "protos/config/check.h"
#include "protos/config/check_incomplete.h"
#include "protos/config/field_value.h"
#include "protos/config/presets.h"
#include "protos/config/problem.h"
#include "protos/config/yaml_reader.h"
#include "protos/config/yaml_tree.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void AppendYaml(const Message& message, const std::string& indent, std::string* yaml) {
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      absl::StrAppend(yaml, indent, field->name(), ": ", ToText(field, message), "\n");
    } else if (message.GetReflection()->HasField(message, field)) {
      absl::StrAppend(yaml, indent, field->name(), ":\n");
      AppendYaml(message.GetReflection()->GetMessage(message, field), indent + "  ", yaml);
    }
  }
}

/// The worker's own program decides these with an external model; only atoll-worker reads them.
constexpr std::string_view kForOurWorker[] = {"inner.beta1",    "inner.epsilon",   "inner.weight_decay",
                                              "inner.momentum", "inner.clip_norm", "inner.precision"};

/// A warning about the fields of the file that nobody reads; empty when there are none.
std::string FieldsWithoutEffect(const v1::RunConfig& config, const std::map<std::string, int>& lines,
                                std::string_view source_name) {
  if (!config.model().has_external()) return "";
  std::vector<std::string> set;
  for (const std::string_view path : kForOurWorker) {
    if (lines.contains(std::string(path))) set.emplace_back(path);
  }
  if (set.empty()) return "";
  return absl::StrCat(std::string(source_name), ":", lines.at(set.front()), ": ", absl::StrJoin(set, ", "),
                      ": no effect with an external model: set this in the program of the workers");
}

void AddWarnings(const YamlReading& reading, std::string_view source_name, RunConfigFile* file) {
  for (const ConfigProblem& old : reading.old_words) {
    file->warnings.push_back(
        absl::StrCat(std::string(source_name), ":", old.line, ": ", old.path, ": ", old.text));
  }
  // An unknown model is read as an external one.
  if (std::ranges::find(reading.problems, "model", &ConfigProblem::path) != reading.problems.end()) return;
  std::string unread = FieldsWithoutEffect(file->config, reading.lines, source_name);
  if (!unread.empty()) file->warnings.push_back(std::move(unread));
}

}  // namespace

uint32_t DefaultStalenessLimit(const v1::RunConfig& config) {
  const v1::MergeMethod method = config.merge().method();
  const bool average = method == v1::MERGE_METHOD_MEAN || method == v1::MERGE_METHOD_RDA;
  const bool guarded = config.offenders().ban_after() > 0 || config.privacy().clip_norm() > 0;
  const bool waits_for_all = config.round().mode() == v1::ROUND_MODE_BARRIER && config.round().quorum() >= 1;
  return waits_for_all && average && !guarded ? 1 : 0;
}

RunConfigReading TryRunConfig(std::string_view yaml, std::string_view source_name) {
  RunConfigReading result;
  absl::StatusOr<YamlNode> root = ParseYaml(yaml, source_name);
  if (!root.ok()) {
    result.status = root.status();
    return result;
  }
  std::vector<ConfigProblem> of_presets = ExpandPresets(&*root);
  v1::RunConfig& config = result.file.config;
  YamlReading reading = ReadMessage(*root, &config);
  for (ConfigProblem& problem : of_presets) {
    std::erase_if(reading.problems, [&](const ConfigProblem& told) {
      return told.path == problem.path && told.line == problem.line;
    });
    reading.problems.push_back(std::move(problem));
  }
  // The default pull_delta needs float32 versions. Other versions are sent in full.
  if (config.codec().pull() != v1::CODEC_FP32 && !reading.lines.contains("codec.pull_delta")) {
    config.mutable_codec()->set_pull_delta(v1::PULL_DELTA_NONE);
  }
  AddWarnings(reading, source_name, &result.file);
  result.file.staleness_open = !reading.lines.contains("round.staleness_limit");
  if (reading.problems.empty()) {
    if (result.file.staleness_open) {
      config.mutable_round()->set_staleness_limit(DefaultStalenessLimit(config));
    }
    reading.problems = CheckTogether(config);
  } else {
    for (ConfigProblem& problem : CheckIncomplete(config, reading)) {
      reading.problems.push_back(std::move(problem));
    }
  }
  for (ConfigProblem& problem : reading.problems) {
    const auto line = reading.lines.find(problem.path);
    if (problem.line == 0 && line != reading.lines.end()) problem.line = line->second;
  }
  result.file.assumed = AssumedFields(reading.lines);
  result.status = ProblemsToStatus(std::move(reading.problems), source_name);
  return result;
}

RunConfigReading TryRunConfigFile(const std::string& path) {
  const absl::StatusOr<std::string> yaml = ReadFile(path, kMaxYamlBytes);
  if (yaml.ok()) return TryRunConfig(*yaml, path);
  return {.file = {}, .status = yaml.status()};
}

absl::StatusOr<RunConfigFile> ReadRunConfig(std::string_view yaml, std::string_view source_name) {
  RunConfigReading reading = TryRunConfig(yaml, source_name);
  ATOLL_RETURN_IF_ERROR(reading.status);
  return std::move(reading.file);
}

absl::StatusOr<v1::RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source_name) {
  ATOLL_ASSIGN_OR_RETURN(RunConfigFile file, ReadRunConfig(yaml, source_name));
  return std::move(file.config);
}

absl::StatusOr<RunConfigFile> ReadRunConfigFile(const std::string& path) {
  RunConfigReading reading = TryRunConfigFile(path);
  ATOLL_RETURN_IF_ERROR(reading.status);
  return std::move(reading.file);
}

absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(RunConfigFile file, ReadRunConfigFile(path));
  return std::move(file.config);
}

std::string FormatRunConfigYaml(const v1::RunConfig& config) {
  std::string yaml;
  AppendYaml(config, "", &yaml);
  return yaml;
}

std::string RunConfigHash(const v1::RunConfig& config) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    config.SerializeToCodedStream(&coded);
  }
  return Sha256Hex(bytes);
}

}  // namespace atl
