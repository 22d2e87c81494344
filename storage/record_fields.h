#ifndef ATOLL_STORAGE_RECORD_FIELDS_H_
#define ATOLL_STORAGE_RECORD_FIELDS_H_

#include <concepts>
#include <type_traits>

#include "storage/record.h"

// The fields of every record, in the order in which they are stored; `Io` is RecordWriter or RecordReader.
// One list for both directions, so that they cannot disagree. Golden tests freeze the bytes.

namespace atl::record_fields {

/// T, const (writing) or not (reading).
template <typename T, typename Record>
concept Is = std::same_as<std::remove_const_t<T>, Record>;

template <typename Io>
void Fields(Io& io, Is<RunIdentity> auto& r) {
  io.Field("run_id", r.run_id);
  io.Field("name", r.name);
  io.Field("epoch", r.epoch);
  io.Field("created_unix_ns", r.created_unix_ns);
  io.Field("shards", r.shards);
  io.Field("chunk_elements", r.chunk_elements);
}

/// What a tensor is, as stored. Releases that know no averaged tensors have a bool there, and do not open a
/// run that has some.
enum class TensorKind : uint8_t { kParameter = 0, kEmbedding = 1, kAveraged = 2 };

inline TensorKind KindOf(const TensorSpec& tensor) {
  if (tensor.averaged) return TensorKind::kAveraged;
  return tensor.embedding ? TensorKind::kEmbedding : TensorKind::kParameter;
}

template <typename Io>
void Fields(Io& io, Is<Manifest> auto& r) {
  io.List("tensors", r.tensors, [&io](auto& tensor) {
    io.Field("tensors.name", tensor.name);
    io.List("tensors.shape", tensor.shape, [&io](auto& d) { io.Field("tensors.shape", d); });
    TensorKind kind = KindOf(tensor);
    io.EnumField("tensors.kind", kind, TensorKind::kParameter, TensorKind::kAveraged);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(tensor)>>) {
      tensor.embedding = kind == TensorKind::kEmbedding;
      tensor.averaged = kind == TensorKind::kAveraged;
    }
  });
  // Written only when there is one, so that a former release can read the record of a run without it.
  constexpr bool kWrites = std::is_const_v<std::remove_reference_t<decltype(r)>>;
  if (kWrites ? r.base_fingerprint.empty() : io.AtEnd()) return;
  io.Field("base_fingerprint", r.base_fingerprint);
}

template <typename Io>
void Fields(Io& io, Is<ConfigEntry> auto& r) {
  io.Field("version", r.version);
  io.Field("recorded_unix_ns", r.recorded_unix_ns);
  io.Field("author", r.author);
  io.Field("bytes", r.bytes);
}

template <typename Io>
void Fields(Io& io, Is<WorkerEntry> auto& r) {
  io.Field("name", r.name);
  io.Field("secret_hash", r.secret_hash);
  io.Field("incarnation", r.incarnation);
  io.Field("role", r.role);
  io.Field("partition", r.partition);
  io.Field("departed", r.departed);
  io.Field("banned", r.banned);
  io.Field("public_key", r.public_key);
  io.Field("dataset_fingerprint", r.dataset_fingerprint);
  io.Field("command", r.command);
  io.Field("command_at_once", r.command_at_once);
  if (io.AtEnd()) return;  // likewise
  io.Field("forgiven_until", r.forgiven_until);
}

template <typename Io>
void Fields(Io& io, Is<PartitionEntry> auto& r) {
  io.Field("partition", r.partition);
  io.Field("samples_consumed", r.samples_consumed);
}

template <typename Io>
void Fields(Io& io, Is<HeadEntry> auto& r) {
  io.Field("fragment", r.fragment);
  io.Field("epoch", r.epoch);
  io.Field("version", r.version);
  io.Field("config_version", r.config_version);
}

template <typename Io>
void Fields(Io& io, Is<StoredEntry> auto& r) {
  io.Field("fragment", r.fragment);
  io.Field("epoch", r.epoch);
  io.Field("elements", r.elements);
  io.Field("state_vectors", r.state_vectors);
  io.List("versions", r.versions, [&io](auto& v) { io.Field("versions", v); });
}

template <typename Io>
void Fields(Io& io, Is<Contribution> auto& r) {
  io.Field("epoch", r.key.epoch);
  io.Field("fragment", r.key.fragment);
  io.Field("base", r.key.base);
  io.Field("worker", r.key.worker);
  io.Field("sequence", r.key.sequence);
  io.Field("incarnation", r.incarnation);
  io.EnumField("codec", r.codec, CodecKind::kFp32, CodecKind::kTopK128Bf16);
  io.Field("payload_bytes", r.payload_bytes);
  io.Field("payload_crc32c", r.payload_crc32c);
  io.Field("tokens", r.tokens);
  io.Field("steps", r.steps);
  io.Field("partition", r.partition);
  io.Field("samples_consumed", r.samples_consumed);
  io.Field("norm", r.norm);
  io.Field("mean_loss", r.mean_loss);
}

template <typename Io>
void Fields(Io& io, Is<OuterOptions> auto& r) {
  io.EnumField("outer.optimizer", r.optimizer, OuterOptimizerKind::kNesterov,
               OuterOptimizerKind::kDelayedNesterov);
  io.Field("outer.learning_rate", r.learning_rate);
  io.Field("outer.momentum", r.momentum);
  io.Field("outer.beta1", r.beta1);
  io.Field("outer.beta2", r.beta2);
  io.Field("outer.epsilon", r.epsilon);
  io.Field("outer.delay", r.delay);
  io.Field("outer.spread", r.spread);
}

template <typename Io>
void Fields(Io& io, Is<MergeOptions> auto& r) {
  io.EnumField("merge.weights", r.weights, MergeWeighting::kUniform, MergeWeighting::kTokensSquaredPerStep);
  io.EnumField("merge.method", r.method, MergeMethod::kMean, MergeMethod::kCenteredClip);
  io.Field("merge.trim", r.trim);
  io.Field("merge.clip_radius", r.clip_radius);
  io.Field("merge.clip_iterations", r.clip_iterations);
  io.Field("merge.norm_guard", r.norm_guard);
  io.EnumField("merge.sparse_average", r.sparse_average, SparseAverage::kAll, SparseAverage::kPresent);
}

template <typename Io>
void Fields(Io& io, Is<ContributionAudit> auto& r) {
  io.Field("audits.worker", r.worker);
  io.Field("audits.offences", r.offences);
  io.Field("audits.measured", r.measured);
  io.Field("audits.norm", r.norm);
  io.Field("audits.guard", r.guard);
  io.Field("audits.clip", r.clip);
  io.Field("audits.distance", r.distance);
  io.Field("audits.cosine", r.cosine);
}

template <typename Io>
void Fields(Io& io, Is<ContentHash> auto& r) {
  io.Field("hash.low", r.low);
  io.Field("hash.high", r.high);
}

template <typename Io>
void Fields(Io& io, Is<RoundRecord> auto& r) {
  io.Field("epoch", r.epoch);
  io.Field("fragment", r.fragment);
  io.Field("version", r.version);
  io.Field("outer_steps", r.outer_steps);
  io.Field("config_version", r.config_version);
  Fields(io, r.outer);
  Fields(io, r.merge);
  io.List("contributions", r.contributions, [&io](auto& c) { Fields(io, c); });
  io.List("weights", r.weights, [&io](auto& w) { io.Field("weights", w); });
  io.Field("committed_tokens", r.committed_tokens);
  io.Field("closed_unix_ns", r.closed_unix_ns);
  io.Field("close_reason", r.close_reason);
  Fields(io, r.parameters);
  Fields(io, r.state);
  Fields(io, r.published);
  if (io.AtEnd()) return;  // a record of before there was more
  io.Field("merge.clip_by_distance", r.merge.clip_by_distance);
  io.List("audits", r.audits, [&io](auto& audit) { Fields(io, audit); });
  io.Field("noise_multiplier", r.noise_multiplier);
}

template <typename Io>
void Fields(Io& io, Is<ConfirmationEntry> auto& r) {
  io.Field("fragment", r.fragment);
  io.Field("version", r.version);
  io.Field("worker", r.worker);
  Fields(io, r.published);
  io.Field("signature", r.signature);
}

template <typename Io>
void Fields(Io& io, Is<EvaluationEntry> auto& r) {
  io.Field("fragment", r.fragment);
  io.Field("version", r.version);
  io.Field("loss", r.loss);
  io.Field("tokens", r.tokens);
  io.Field("unix_ns", r.unix_ns);
  // Without tasks, the record has the bytes of releases that had no tasks.
  constexpr bool kWrites = std::is_const_v<std::remove_reference_t<decltype(r)>>;
  if (kWrites ? r.tasks.empty() : io.AtEnd()) return;
  io.List("tasks", r.tasks, [&io](auto& score) {
    io.Field("tasks.task", score.task);
    io.Field("tasks.metric", score.metric);
    io.Field("tasks.value", score.value);
    io.Field("tasks.standard_error", score.standard_error);
    io.Field("tasks.questions", score.questions);
  });
}

template <typename Io>
void Fields(Io& io, Is<EventEntry> auto& r) {
  io.Field("sequence", r.sequence);
  io.Field("bytes", r.bytes);
}

template <typename Io>
void Fields(Io& io, Is<ControlEntry> auto& r) {
  io.EnumField("mode", r.mode, RunMode::kRunning, RunMode::kStopped);
  io.Field("unix_ns", r.unix_ns);
  io.Field("author", r.author);
  io.Field("reason", r.reason);
  io.Field("workers", r.workers);
  io.Field("workers_at_start", r.workers_at_start);
}

}  // namespace atl::record_fields

#endif  // ATOLL_STORAGE_RECORD_FIELDS_H_
