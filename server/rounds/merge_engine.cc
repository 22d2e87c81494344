#include "server/rounds/merge_engine.h"

#include <algorithm>
#include <utility>

#include "common/block_hasher.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "common/mutex.h"
#include "core/codec.h"
#include "core/delta.h"
#include "core/fragment_plan.h"
#include "core/fused_outer_step.h"
#include "core/merge_comparison.h"

namespace atl {
namespace {

// Elements of one piece of work: one hash block of float32.
constexpr uint64_t kPieceElements = kHashBlockBytes / sizeof(float);
// Elements of what is made at a time, and then hashed and encoded while it is in the L2 cache, however many
// inputs and vectors there are.
constexpr uint64_t kStepElements = kPieceElements / 16;
static_assert(kStepElements % kChunkAlignment == 0);
static_assert(kPieceElements % kChunkAlignment == 0,
              "MergeAndStepRange begins at multiples of the alignment");
// A payload's crc is per wire chunk and its hash per hash block: one pass does both.
static_assert(kWireChunkBytes == kHashBlockBytes);

ContentHash Combine(std::span<const Hash128> digests, uint64_t bytes) {
  const Hash128 hash = CombineBlocks(digests, bytes);
  return {.low = hash.low, .high = hash.high};
}

// Encodings that are published have a fixed number of bytes per value, in order (docs/reference/codecs.md),
// so that the encoding of a piece is a piece of the encoding.
std::span<std::byte> EncodedPiece(const Codec& codec, std::span<std::byte> payload, uint64_t first,
                                  uint64_t size) {
  return payload.subspan(codec.EncodedSize(first), codec.EncodedSize(size));
}

std::span<const std::byte> Block(std::span<const std::byte> bytes, size_t index) {
  const size_t begin = index * kHashBlockBytes;
  return bytes.subspan(begin, std::min(kHashBlockBytes, bytes.size() - begin));
}

std::span<const std::byte> Range(const TensorBuffer& vector, uint64_t first, uint64_t size) {
  return std::as_bytes(vector.values().subspan(first, size));
}

// All but the payload and what is computed of it.
std::shared_ptr<Snapshot> NewSnapshot(const FragmentState& state, Version version, CodecKind codec) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->epoch = state.epoch;
  snapshot->fragment = state.layout.id;
  snapshot->version = version;
  snapshot->codec = codec;
  snapshot->elements = state.layout.elements;
  snapshot->chunk_crc32c.resize(HashBlocks(CodecFor(codec).EncodedSize(state.layout.elements)));
  return snapshot;
}

// The first error of several threads, by piece, so that it is the same one every time.
class FirstError {
 public:
  void Note(size_t piece, absl::Status status) {
    if (status.ok()) return;
    const MutexLock lock(&mutex_);
    if (!status_.ok() && piece >= piece_) return;
    piece_ = piece;
    status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  Mutex mutex_;
  size_t piece_ = 0;
  absl::Status status_;
};

}  // namespace

// Digests of blocks; a piece of float32 is one block.
struct MergeEngine::Seals {
  std::vector<Hash128> theta;
  std::vector<Hash128> state;      // vector by vector
  std::vector<Hash128> published;  // with delta pulls
};

// A version on its way: its theta, and what is filled besides.
struct MergeEngine::Making {
  Version version;
  std::shared_ptr<const TensorBuffer> theta;
  std::shared_ptr<std::vector<std::byte>> encoded = nullptr;  // of theta; null: float32 travels
  std::shared_ptr<PublishedDelta> delta = nullptr;    // null: no step is taken, or delta pulls are off
  std::shared_ptr<TensorBuffer> published = nullptr;  // with `delta`
};

absl::StatusOr<ComputedVersion> MergeEngine::Step(std::span<const MergeInput> inputs,
                                                  const MergeOptions& merge, const OuterOptions& outer,
                                                  FragmentState& state, MergeFindings* findings,
                                                  bool compare) {
  const uint64_t elements = state.layout.elements;
  MergePlanner planner(merge, inputs, state.layout);
  while (planner.needs_pass()) {
    parallel_.Run(planner.pieces(), [&](size_t piece) { planner.Measure(piece); });
    planner.EndPass();
  }
  const std::shared_ptr<TensorBuffer> theta = pool_.Take(elements);
  Making making = Begin(state, theta, Next(state.version));
  if (delta_) {
    making.published = published_pool_.Take(elements);
    making.delta = std::make_shared<PublishedDelta>();
    making.delta->from = state.version;
    making.delta->to = making.version;
    making.delta->codec = *delta_;
    making.delta->payload.resize(CodecFor(*delta_).EncodedSize(elements));
  }
  std::optional<MergeComparison> comparison;
  if (findings != nullptr && compare) {
    comparison.emplace(planner.plan(), (elements + kPieceElements - 1) / kPieceElements);
  }
  auto made = Make(state, making, [&](uint64_t first, uint64_t size) {
    std::vector<std::span<float>> vectors;
    for (TensorBuffer& vector : state.state) vectors.push_back(vector.values().subspan(first, size));
    MergedBlock on_merged;
    if (comparison) {
      on_merged = [&comparison, piece = first / kPieceElements](uint64_t at, std::span<const float> merged) {
        comparison->Add(piece, at, merged);
      };
    }
    return MergeAndStepRange(planner.plan(), outer, state.outer_steps + 1, first,
                             state.theta->values().subspan(first, size), theta->values().subspan(first, size),
                             vectors, on_merged);
  });
  if (findings == nullptr || !made.ok()) return made;
  *findings = {.guard = planner.guard_factors(), .clip = planner.clip_factors()};
  if (comparison) {
    MergeComparison::Result compared = comparison->Finish();
    findings->cosines = std::move(compared.cosines);
    findings->distances = std::move(compared.distances);
  }
  return made;
}

ComputedVersion MergeEngine::Publish(const FragmentState& state) {
  // Nothing is made, so nothing can fail.
  return *Make(state, Begin(state, state.theta, state.version),
               [](uint64_t, uint64_t) { return absl::OkStatus(); });
}

MergeEngine::Making MergeEngine::Begin(const FragmentState& state, std::shared_ptr<const TensorBuffer> theta,
                                       Version version) const {
  Making making{.version = version, .theta = std::move(theta)};
  if (pull_codec_ != CodecKind::kFp32) {
    making.encoded =
        std::make_shared<std::vector<std::byte>>(CodecFor(pull_codec_).EncodedSize(state.layout.elements));
  }
  return making;
}

absl::Status MergeEngine::PublishPiece(const FragmentState& state, const Making& making, uint64_t first,
                                       uint64_t size) const {
  const std::span<const float> theta = making.theta->values().subspan(first, size);
  if (making.encoded != nullptr) {
    CodecFor(pull_codec_).Encode(theta, EncodedPiece(CodecFor(pull_codec_), *making.encoded, first, size));
  }
  if (making.delta == nullptr) return absl::OkStatus();
  const Codec& codec = CodecFor(*delta_);
  return EncodeDelta(codec, theta, state.published->values().subspan(first, size), first,
                     EncodedPiece(codec, making.delta->payload, first, size),
                     making.published->values().subspan(first, size));
}

absl::StatusOr<ComputedVersion> MergeEngine::Make(const FragmentState& state, const Making& making,
                                                  const MakePiece& make) {
  const uint64_t elements = state.layout.elements;
  const size_t pieces = (elements + kPieceElements - 1) / kPieceElements;
  // The float32 values that travel, if they do.
  const std::shared_ptr<const TensorBuffer> values =
      making.delta ? making.published : (delta_ ? state.published : making.theta);
  const auto snapshot = NewSnapshot(state, making.version, pull_codec_);
  Seals seals{.theta = std::vector<Hash128>(pieces),
              .state = std::vector<Hash128>(pieces * state.state.size()),
              .published = std::vector<Hash128>(pieces)};
  FirstError error;
  parallel_.Run(pieces, [&](size_t piece) {
    std::vector<BlockHasher> hashes(2 + state.state.size());  // of theta, published, each state vector
    uint32_t crc32c = 0;
    const uint64_t end = std::min(elements, (piece + 1) * kPieceElements);
    for (uint64_t first = piece * kPieceElements; first < end; first += kStepElements) {
      const uint64_t size = std::min(kStepElements, end - first);
      absl::Status made = make(first, size);
      if (made.ok()) made = PublishPiece(state, making, first, size);
      if (!made.ok()) return error.Note(piece, std::move(made));
      hashes[0].Add(Range(*making.theta, first, size));
      if (delta_) hashes[1].Add(Range(*values, first, size));
      for (size_t v = 0; v < state.state.size(); ++v) hashes[2 + v].Add(Range(state.state[v], first, size));
      if (making.encoded == nullptr) crc32c = Crc32c(Range(*values, first, size), crc32c);
    }
    seals.theta[piece] = hashes[0].Digest();
    if (delta_) seals.published[piece] = hashes[1].Digest();
    for (size_t v = 0; v < state.state.size(); ++v) seals.state[v * pieces + piece] = hashes[2 + v].Digest();
    if (making.encoded == nullptr) snapshot->chunk_crc32c[piece] = crc32c;
  });
  if (!error.status().ok()) return error.status();
  // The encoding of float32 is the values' bytes (docs/reference/codecs.md), so they themselves are what
  // travels.
  snapshot->payload = making.encoded ? std::span<const std::byte>(*making.encoded) : values->bytes();
  snapshot->owner = making.encoded ? std::shared_ptr<const void>(making.encoded) : values;
  if (making.encoded) {
    seals.published.assign(HashBlocks(making.encoded->size()), {});
    SealPayload(snapshot->payload, snapshot->chunk_crc32c, &seals.published);
  }
  const uint64_t bytes = elements * sizeof(float);
  ComputedVersion computed;
  computed.hashes.parameters = Combine(seals.theta, bytes);
  computed.hashes.state = Combine(seals.state, bytes * state.state.size());
  computed.hashes.published = making.encoded || delta_ ? Combine(seals.published, snapshot->payload.size())
                                                       : computed.hashes.parameters;
  snapshot->published = computed.hashes.published;
  if (making.delta) {
    making.delta->published = snapshot->published;
    making.delta->chunk_crc32c.resize(HashBlocks(making.delta->payload.size()));
    SealPayload(making.delta->payload, making.delta->chunk_crc32c, nullptr);
    snapshot->delta = making.delta;
  }
  computed.theta = making.theta;
  if (delta_) computed.published = values;
  computed.snapshot = snapshot;
  return computed;
}

void MergeEngine::SealPayload(std::span<const std::byte> payload, std::vector<uint32_t>& crcs,
                              std::vector<Hash128>* hashes) {
  parallel_.Run(crcs.size(), [&](size_t index) {
    const std::span<const std::byte> block = Block(payload, index);
    if (hashes != nullptr) (*hashes)[index] = HashBlock(block);
    crcs[index] = Crc32c(block);
  });
}

}  // namespace atl
