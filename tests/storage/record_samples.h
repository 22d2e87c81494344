#ifndef ATOLL_TESTS_STORAGE_RECORD_SAMPLES_H_
#define ATOLL_TESTS_STORAGE_RECORD_SAMPLES_H_

#include "storage/record.h"

// One record of each kind, every field different from its default. Frozen: tests/golden/storage holds their
// bytes.

namespace atl::record_samples {

inline RunIdentity Identity() {
  return {.run_id = "00112233445566ff",
          .name = "sample",
          .epoch = Epoch(0x0102030405060708),
          .created_unix_ns = 1700000000123456789,
          .shards = 4,
          .chunk_elements = 1048576};
}

inline Manifest SampleManifest() {
  return {.tensors = {{.name = "wte.weight", .shape = {256, 128}, .embedding = true},
                      {.name = "scale", .shape = {}, .embedding = false},
                      {.name = "h.0.attn", .shape = {3, 128, 128}, .embedding = false}}};
}

inline Manifest ManifestWithBase() {
  return {.tensors = {{.name = "lora_a", .shape = {8, 128}}}, .base_fingerprint = "00112233445566778899aabb"};
}

inline Manifest ManifestWithAveraged() {
  return {
      .tensors = {{.name = "w", .shape = {4}}, {.name = "bn.running_mean", .shape = {4}, .averaged = true}},
      .base_fingerprint = "00112233445566778899aabb"};
}

inline ConfigEntry Config() {
  return {.version = 3, .recorded_unix_ns = -1, .author = "alice", .bytes = std::string("opaque\0bytes", 12)};
}

inline WorkerEntry Worker() {
  return {.name = "worker-1.eu",
          .secret_hash = "ab12",
          .incarnation = Incarnation(77),
          .role = 1,
          .partition = 12,
          .departed = true,
          .banned = true,
          .public_key = "key",
          .dataset_fingerprint = "cafe",
          .command = 3,
          .command_at_once = true,
          .forgiven_until = 39};
}

inline PartitionEntry Partition() { return {.partition = 9, .samples_consumed = 123456789012}; }

inline HeadEntry Head() {
  return {.fragment = FragmentId(2),
          .epoch = Epoch(0x0102030405060708),
          .version = Version(42),
          .config_version = 3};
}

inline StoredEntry Stored() {
  return {.fragment = FragmentId(2),
          .epoch = Epoch(0x0102030405060708),
          .elements = 822528,
          .state_vectors = 1,
          .versions = {Version(40), Version(42)}};
}

inline Contribution SampleContribution() {
  return {.key = {.epoch = Epoch(0x0102030405060708),
                  .fragment = FragmentId(2),
                  .base = Version(41),
                  .worker = "worker-1.eu",
                  .sequence = 1},
          .incarnation = Incarnation(77),
          .codec = CodecKind::kBf16,
          .payload_bytes = 1645056,
          .payload_crc32c = 0xdeadbeef,
          .tokens = 38400,
          .steps = 50,
          .partition = 3,
          .samples_consumed = 600,
          .norm = 0.75,
          .mean_loss = 1.7421875};
}

inline RoundRecord Round() {
  return {.epoch = Epoch(0x0102030405060708),
          .fragment = FragmentId(2),
          .version = Version(42),
          .outer_steps = 40,
          .config_version = 3,
          .outer = {.optimizer = OuterOptimizerKind::kAdam,
                    .learning_rate = 0.5,
                    .momentum = 0.25,
                    .beta1 = 0.125,
                    .beta2 = 0.0625,
                    .epsilon = 0.03125,
                    .delay = 7,
                    .spread = 0.015625},
          .merge = {.weights = MergeWeighting::kUniform,
                    .method = MergeMethod::kTrimmedMean,
                    .trim = 0.375,
                    .clip_radius = 1.5,
                    .clip_iterations = 5,
                    .clip_by_distance = true,
                    .norm_guard = true,
                    .sparse_average = SparseAverage::kPresent},
          .contributions = {SampleContribution()},
          .weights = {1.0f},
          .committed_tokens = 1612800,
          .closed_unix_ns = 1700000000987654321,
          .close_reason = "all arrived",
          .parameters = {.low = 0x1111111111111111, .high = 0x2222222222222222},
          .state = {.low = 0x3333333333333333, .high = 0x4444444444444444},
          .published = {.low = 0x5555555555555555, .high = 0x6666666666666666},
          .audits = {{.worker = "worker-1.eu",
                      .offences = 10,
                      .measured = true,
                      .norm = 1.25,
                      .guard = 0.5,
                      .clip = 0.25,
                      .distance = 2.5,
                      .cosine = -0.75}},
          .noise_multiplier = 1.5};
}

inline EvaluationEntry Evaluation() {
  return {.fragment = FragmentId(2),
          .version = Version(42),
          .loss = 1.625,
          .tokens = 30720,
          .unix_ns = 1700000001000000000};
}

inline ConfirmationEntry Confirmation() {
  return {.fragment = FragmentId(2),
          .version = Version(42),
          .worker = "w-1",
          .published = {.low = 0x1111111111111111, .high = 0x2222222222222222},
          .signature = "sig"};
}

inline EventEntry Event() { return {.sequence = 1000, .bytes = "opaque event"}; }

inline ControlEntry Control() {
  return {.mode = RunMode::kPaused,
          .unix_ns = 1700000002000000000,
          .author = "ann (127.0.0.1:50123)",
          .reason = "new disks",
          .workers = 12,
          .workers_at_start = 4};
}

/// Calls `visit(name, record)` for each.
template <typename Visit>
void ForEach(const Visit& visit) {
  visit("identity", Identity());
  visit("manifest", SampleManifest());
  visit("manifest_base", ManifestWithBase());
  visit("manifest_averaged", ManifestWithAveraged());
  visit("config", Config());
  visit("worker", Worker());
  visit("partition", Partition());
  visit("head", Head());
  visit("stored", Stored());
  visit("round", Round());
  visit("contribution", SampleContribution());
  visit("evaluation", Evaluation());
  visit("event", Event());
  visit("control", Control());
  visit("confirmation", Confirmation());
}

}  // namespace atl::record_samples

#endif  // ATOLL_TESTS_STORAGE_RECORD_SAMPLES_H_
