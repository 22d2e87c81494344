#include "server/merge_engine.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/round_math.h"

namespace atoll {
namespace {

// Elements of one piece of work: one hash block of float32.
constexpr uint64_t kPieceElements = kHashBlockBytes / sizeof(float);
static_assert(kPieceElements % kChunkAlignment == 0,
              "MergeAndStepRange begins at multiples of the alignment");
// A payload's crc is per wire chunk and its hash per hash block: one pass does both.
static_assert(kWireChunkBytes == kHashBlockBytes);

ContentHash Combine(std::span<const Hash128> digests, uint64_t bytes) {
  const Hash128 hash = CombineBlocks(digests, bytes);
  return {.low = hash.low, .high = hash.high};
}

// Encodings that are published have a fixed number of bytes per value, in order (docs/codecs.md), so that the
// encoding of a piece is a piece of the encoding.
void EncodePiece(const Codec& codec, std::span<const float> values, uint64_t first, uint64_t size,
                 std::span<std::byte> payload) {
  codec.Encode(values.subspan(first, size),
               payload.subspan(codec.EncodedSize(first), codec.EncodedSize(size)));
}

std::span<const std::byte> Block(std::span<const std::byte> bytes, size_t index) {
  const size_t begin = index * kHashBlockBytes;
  return bytes.subspan(begin, std::min(kHashBlockBytes, bytes.size() - begin));
}

// The first error of several threads, by piece, so that it is the same one every time.
class FirstError {
 public:
  void Note(size_t piece, absl::Status status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok() && piece >= piece_) return;
    piece_ = piece;
    status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  size_t piece_ = 0;
  absl::Status status_;
};

}  // namespace

// Digests of blocks; a piece of float32 is one block.
struct MergeEngine::Seals {
  std::vector<Hash128> theta;
  std::vector<Hash128> state;    // vector by vector
  std::vector<Hash128> payload;  // empty: the payload is theta
};

absl::StatusOr<ComputedVersion> MergeEngine::Step(std::span<const MergeInput> inputs,
                                                  const MergeOptions& merge, const OuterOptions& outer,
                                                  FragmentState& state) {
  const uint64_t elements = state.layout.elements;
  MergePlanner planner(merge, inputs, state.layout);
  while (planner.needs_pass()) {
    parallel_.Run(planner.pieces(), [&](size_t piece) { planner.Measure(piece); });
    planner.EndPass();
  }
  const Version version = Next(state.version);
  const std::shared_ptr<TensorBuffer> theta = pool_.Take(elements);
  return Make(state, theta, version, [&](uint64_t first, uint64_t size) {
    std::vector<std::span<float>> vectors;
    for (TensorBuffer& vector : state.state) vectors.push_back(vector.values().subspan(first, size));
    return MergeAndStepRange(planner.plan(), outer, state.outer_steps + 1, first,
                             state.theta->values().subspan(first, size), theta->values().subspan(first, size),
                             vectors);
  });
}

ComputedVersion MergeEngine::Publish(const FragmentState& state) {
  // Nothing is made, so nothing can fail.
  return *Make(state, state.theta, state.version, [](uint64_t, uint64_t) { return absl::OkStatus(); });
}

absl::StatusOr<ComputedVersion> MergeEngine::Make(const FragmentState& state,
                                                  std::shared_ptr<const TensorBuffer> theta, Version version,
                                                  const MakePiece& make) {
  const uint64_t elements = state.layout.elements;
  const size_t pieces = (elements + kPieceElements - 1) / kPieceElements;
  const bool plain = pull_codec_ == CodecKind::kFp32;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->epoch = state.epoch;
  snapshot->fragment = state.layout.id;
  snapshot->version = version;
  snapshot->codec = pull_codec_;
  snapshot->elements = elements;
  snapshot->chunk_crc32c.resize(HashBlocks(CodecFor(pull_codec_).EncodedSize(elements)));
  auto encoded =
      plain ? nullptr : std::make_shared<std::vector<std::byte>>(CodecFor(pull_codec_).EncodedSize(elements));
  Seals seals{.theta = std::vector<Hash128>(pieces),
              .state = std::vector<Hash128>(pieces * state.state.size()),
              .payload = {}};
  FirstError error;
  parallel_.Run(pieces, [&](size_t piece) {
    const uint64_t first = piece * kPieceElements;
    const uint64_t size = std::min(kPieceElements, elements - first);
    error.Note(piece, make(first, size));
    const std::span<const std::byte> block = Block(theta->bytes(), piece);
    seals.theta[piece] = HashBlock(block);
    for (size_t v = 0; v < state.state.size(); ++v) {
      seals.state[v * pieces + piece] = HashBlock(Block(state.state[v].bytes(), piece));
    }
    if (plain) {
      snapshot->chunk_crc32c[piece] = Crc32c(block);
    } else {
      EncodePiece(CodecFor(pull_codec_), theta->values(), first, size, *encoded);
    }
  });
  if (!error.status().ok()) return error.status();
  // The encoding of float32 is the values' bytes (docs/codecs.md), so theta itself is what travels.
  snapshot->payload = plain ? theta->bytes() : std::span<const std::byte>(*encoded);
  snapshot->owner =
      plain ? std::shared_ptr<const void>(theta) : std::shared_ptr<const void>(std::move(encoded));
  if (!plain) SealEncoded(*snapshot, seals);
  const uint64_t bytes = elements * sizeof(float);
  ComputedVersion computed;
  computed.hashes.parameters = Combine(seals.theta, bytes);
  computed.hashes.state = Combine(seals.state, bytes * state.state.size());
  computed.hashes.published =
      plain ? computed.hashes.parameters : Combine(seals.payload, snapshot->payload.size());
  snapshot->published = computed.hashes.published;
  computed.theta = std::move(theta);
  computed.snapshot = std::move(snapshot);
  return computed;
}

void MergeEngine::SealEncoded(Snapshot& snapshot, Seals& seals) {
  seals.payload.resize(HashBlocks(snapshot.payload.size()));
  parallel_.Run(seals.payload.size(), [&](size_t index) {
    const std::span<const std::byte> block = Block(snapshot.payload, index);
    seals.payload[index] = HashBlock(block);
    snapshot.chunk_crc32c[index] = Crc32c(block);
  });
}

}  // namespace atoll
