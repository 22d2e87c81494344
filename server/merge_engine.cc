#include "server/merge_engine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/payload_stats.h"
#include "core/round_math.h"

namespace atoll {
namespace {

// Elements of one piece of work: one hash block of float32.
constexpr uint64_t kPieceElements = kHashBlockBytes / sizeof(float);
static_assert(kPieceElements % kChunkAlignment == 0,
              "MergeAndStepRange begins at multiples of the alignment");
// A payload's crc is per wire chunk and its hash per hash block: one pass does both.
static_assert(kWireChunkBytes == kHashBlockBytes);

ContentHash ToContentHash(const Hash128& hash) { return {.low = hash.low, .high = hash.high}; }

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

absl::StatusOr<ComputedVersion> MergeEngine::Step(std::span<const MergeInput> inputs,
                                                  const OuterOptions& outer, FragmentState& state) {
  const uint64_t elements = state.layout.elements;
  const Version version = Next(state.version);
  auto theta = std::make_shared<TensorBuffer>(elements);
  FirstError error;
  parallel_.Run((elements + kPieceElements - 1) / kPieceElements, [&](size_t piece) {
    const uint64_t first = piece * kPieceElements;
    const uint64_t size = std::min(kPieceElements, elements - first);
    std::vector<std::span<float>> vectors;
    for (TensorBuffer& vector : state.state) vectors.push_back(vector.values().subspan(first, size));
    error.Note(piece, MergeAndStepRange(inputs, outer, version, elements, first,
                                        state.theta->values().subspan(first, size),
                                        theta->values().subspan(first, size), vectors));
  });
  if (!error.status().ok()) return error.status();
  return Seal(state, std::move(theta), version);
}

ComputedVersion MergeEngine::Publish(const FragmentState& state) {
  return Seal(state, state.theta, state.version);
}

ComputedVersion MergeEngine::Seal(const FragmentState& state, std::shared_ptr<const TensorBuffer> theta,
                                  Version version) {
  ComputedVersion computed;
  computed.snapshot = MakeSnapshot(state, theta, version);
  computed.hashes.published = computed.snapshot->published;
  const std::span<const std::byte> parameters = theta->bytes();
  computed.hashes.parameters =
      pull_codec_ == CodecKind::kFp32 ? computed.hashes.published : Hash(std::span(&parameters, 1));
  std::vector<std::span<const std::byte>> vectors;
  for (const TensorBuffer& vector : state.state) vectors.push_back(vector.bytes());
  computed.hashes.state = Hash(vectors);
  computed.theta = std::move(theta);
  return computed;
}

std::shared_ptr<Snapshot> MergeEngine::MakeSnapshot(const FragmentState& state,
                                                    std::shared_ptr<const TensorBuffer> theta,
                                                    Version version) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->epoch = state.epoch;
  snapshot->fragment = state.layout.id;
  snapshot->version = version;
  snapshot->codec = pull_codec_;
  snapshot->elements = state.layout.elements;
  if (pull_codec_ == CodecKind::kFp32) {
    // The encoding of float32 is the values' bytes (docs/codecs.md), so theta itself is what travels.
    snapshot->payload = theta->bytes();
    snapshot->owner = std::move(theta);
  } else {
    const Codec& codec = CodecFor(pull_codec_);
    auto payload = std::make_shared<std::vector<std::byte>>(codec.EncodedSize(state.layout.elements));
    codec.Encode(theta->values(), *payload);
    snapshot->payload = *payload;
    snapshot->owner = std::move(payload);
  }
  const size_t blocks = HashBlocks(snapshot->payload.size());
  std::vector<Hash128> digests(blocks);
  snapshot->chunk_crc32c.resize(blocks);
  parallel_.Run(blocks, [&](size_t block) {
    const std::span<const std::byte> bytes = Block(snapshot->payload, block);
    digests[block] = HashBlock(bytes);
    snapshot->chunk_crc32c[block] = Crc32c(bytes);
  });
  snapshot->published = ToContentHash(CombineBlocks(digests, snapshot->payload.size()));
  return snapshot;
}

ContentHash MergeEngine::Hash(std::span<const std::span<const std::byte>> parts) {
  std::vector<std::span<const std::byte>> blocks;
  uint64_t total = 0;
  for (const std::span<const std::byte> part : parts) {
    for (size_t i = 0; i < HashBlocks(part.size()); ++i) blocks.push_back(Block(part, i));
    total += part.size();
  }
  std::vector<Hash128> digests(blocks.size());
  parallel_.Run(blocks.size(), [&](size_t block) { digests[block] = HashBlock(blocks[block]); });
  return ToContentHash(CombineBlocks(digests, total));
}

bool MergeEngine::AllFinite(std::span<const float> values) {
  std::atomic<bool> finite{true};
  parallel_.Run((values.size() + kPieceElements - 1) / kPieceElements, [&](size_t piece) {
    const size_t first = piece * kPieceElements;
    const auto part = values.subspan(first, std::min<size_t>(kPieceElements, values.size() - first));
    if (FirstNonFinite(part)) finite = false;
  });
  return finite;
}

}  // namespace atoll
