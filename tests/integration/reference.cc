#include "tests/integration/reference.h"

#include <unistd.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr uint32_t kBatch = 4;  // TinyConfig's

absl::Status WriteFloats(const std::string& path, const std::vector<float>& values) {
  return WriteFileAtomically(
      path, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

absl::StatusOr<std::vector<std::vector<float>>> ReadPushed(RunStore& store, const RoundRecord& record,
                                                           uint64_t elements) {
  std::vector<std::vector<float>> all;
  for (const Contribution& contribution : record.contributions) {
    ATOLL_ASSIGN_OR_RETURN(const auto payload, store.OpenPayload(contribution.key));
    std::vector<float>& values = all.emplace_back(elements);
    CodecFor(contribution.codec).DecodeRange(payload->bytes(), elements, 0, values);
  }
  return all;
}

}  // namespace

bool HavePyTorch() {
  // Found, not imported: an import takes more than a minute on a machine under load.
  constexpr char kLook[] =
      "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') and u.find_spec('numpy')))";
  return access("/usr/bin/python3", X_OK) == 0 &&
         RunToEnd({"/usr/bin/python3", "-c", kLook}, Seconds(60)).exit_code == 0;
}

std::vector<float> ReadFloats(const std::string& path) {
  const std::string bytes = ReadFile(path).value_or("");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double RelativeError(const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (ours.size() != theirs.size()) return HUGE_VAL;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(static_cast<double>(ours[i]) - theirs[i], 2);
    norm += std::pow(static_cast<double>(theirs[i]), 2);
  }
  return std::sqrt(difference / norm);
}

absl::StatusOr<RunOnDisk> ReadRun(const std::string& data_dir) {
  ATOLL_ASSIGN_OR_RETURN(const auto store,
                         OpenRocksDbStore({.data_dir = data_dir, .create_if_missing = false}));
  ATOLL_ASSIGN_OR_RETURN(const auto recovery, store->Recover());
  if (!recovery.has_value() || !recovery->manifest.has_value()) {
    return absl::FailedPreconditionError(data_dir + " holds no run that was seeded");
  }
  ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(*recovery->manifest, 1));
  RunOnDisk run;
  for (uint64_t version = 0; version <= recovery->fragments[0].stored.value(); ++version) {
    auto tensors = store->ReadVersion(layouts[0], Version(version));
    if (tensors.ok()) run.versions[version] = std::move(tensors->parameters);
    if (version == 0) continue;
    ATOLL_ASSIGN_OR_RETURN(RoundRecord record, store->ReadRound(FragmentId(0), Version(version)));
    auto pushed = ReadPushed(*store, record, layouts[0].elements);
    if (pushed.ok()) run.pushed[version] = *std::move(pushed);
    run.rounds.push_back(std::move(record));
  }
  return run;
}

absl::StatusOr<nlohmann::json> ReplayOptions(const Cluster& cluster, const RunOnDisk& run) {
  const auto write = [&](const std::string& name,
                         const std::vector<float>& values) -> absl::StatusOr<std::string> {
    ATOLL_RETURN_IF_ERROR(WriteFloats(cluster.PathOf(name), values));
    return cluster.PathOf(name);
  };
  nlohmann::json rounds = nlohmann::json::array();
  for (const RoundRecord& record : run.rounds) {
    const uint64_t version = record.version.value();
    if (!run.versions.contains(version) || !run.pushed.contains(version)) {
      return absl::NotFoundError(absl::StrFormat("version %d was not kept with its contributions", version));
    }
    nlohmann::json contributions = nlohmann::json::array();
    for (size_t i = 0; i < record.contributions.size(); ++i) {
      const Contribution& one = record.contributions[i];
      ATOLL_ASSIGN_OR_RETURN(const std::string sent, write(absl::StrFormat("sent_%03d_%d.f32", version, i),
                                                           run.pushed.at(version).at(i)));
      contributions.push_back({{"worker", one.key.worker},
                               {"base", one.key.base.value()},
                               {"steps", one.steps},
                               {"partition", one.partition.value_or(0)},
                               {"first_sample", one.samples_consumed - uint64_t{one.steps} * kBatch},
                               {"sent", sent}});
    }
    ATOLL_ASSIGN_OR_RETURN(const std::string parameters,
                           write(absl::StrFormat("version_%03d.f32", version), run.versions.at(version)));
    rounds.push_back({{"version", version},
                      {"outer_step", record.outer_steps},
                      {"parameters", parameters},
                      {"contributions", std::move(contributions)}});
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string initial, write("initial.f32", run.versions.at(0)));
  return nlohmann::json{{"rounds", std::move(rounds)},
                        {"tokens", cluster.PathOf("tokens")},
                        {"layers", 2},
                        {"heads", 2},
                        {"width", 32},
                        {"context", 32},
                        {"vocabulary", 256},
                        {"batch", kBatch},
                        {"seed", 7},
                        {"workers", 2},
                        {"learning_rate", 0.003},
                        {"min_learning_rate_ratio", 1.0},
                        {"eval_batches", 4},
                        {"initial", initial}};
}

absl::StatusOr<nlohmann::json> RunReference(const Cluster& cluster, const std::string& script,
                                            const nlohmann::json& options) {
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(cluster.PathOf("options.json"), options.dump()));
  const Finished reference =
      RunToEnd({"/usr/bin/python3", "-B", std::string(ATOLL_SOURCE_DIR) + "/tests/reference/" + script,
                cluster.PathOf("options.json"), cluster.PathOf("result.json")},
               Seconds(180));
  if (reference.exit_code != 0) return absl::InternalError(reference.output);
  ATOLL_ASSIGN_OR_RETURN(const std::string result, ReadFile(cluster.PathOf("result.json")));
  return nlohmann::json::parse(result);
}

}  // namespace atl
