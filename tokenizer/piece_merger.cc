#include "tokenizer/piece_merger.h"

#include <cstring>

namespace atl {
namespace {

constexpr TokenId kNothing = ~TokenId{0};
constexpr uint32_t kNone = ~uint32_t{0};
// Above it the queue is faster (measured with Chinese text, whose pieces are long).
constexpr size_t kShort = 80;

}  // namespace

PieceMerger::PieceMerger(const Vocabulary& vocabulary, std::optional<TokenId> unknown)
    : pairs_(vocabulary.pairs()), first_(256), first_pairs_(size_t{256} * 256, kNoMerge) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary.OfByte(static_cast<uint8_t>(byte));
    first_[byte] = id ? *id : unknown ? *unknown : kNothing;
  }
  for (size_t left = 0; left < 256; ++left) {
    for (size_t right = 0; right < 256; ++right) {
      if (first_[left] == kNothing || first_[right] == kNothing) continue;
      first_pairs_[left << 8 | right] = pairs_.Find(first_[left], first_[right]);
    }
  }
}

size_t PieceMerger::Merge(std::string_view piece, TokenId* out) {
  const size_t count = Start(piece);
  if (count <= 1) {
    if (count == 1) out[0] = tokens_[0];
    return count;
  }
  return count <= kShort ? MergeShort(count, out) : MergeLong(count, out);
}

/// Sets the tokens of the bytes and the merges of neighbours.
size_t PieceMerger::Start(std::string_view piece) {
  if (tokens_.size() < piece.size()) {
    tokens_.resize(piece.size());
    merges_.resize(piece.size());
  }
  size_t count = 0;
  uint8_t before = 0;
  for (const char c : piece) {
    const auto byte = static_cast<uint8_t>(c);
    if (first_[byte] == kNothing) continue;
    if (count > 0) merges_[count - 1] = first_pairs_[size_t{before} << 8 | byte];
    tokens_[count++] = first_[byte];
    before = byte;
  }
  if (count > 0) merges_[count - 1] = kNoMerge;
  return count;
}

size_t PieceMerger::MergeShort(size_t count, TokenId* out) {
  TokenId* const tokens = tokens_.data();
  MergeKey* const merges = merges_.data();
  while (true) {
    size_t best = 0;
    MergeKey least = merges[0];
    for (size_t i = 1; i + 1 < count; ++i) {
      // Ranks alone: among equals the leftmost comes first, whatever its result.
      if (RankOf(merges[i]) < RankOf(least)) {
        least = merges[i];
        best = i;
      }
    }
    if (least == kNoMerge) break;
    tokens[best] = ResultOf(least);
    const size_t after = count - best - 2;
    std::memmove(tokens + best + 1, tokens + best + 2, after * sizeof(*tokens));
    std::memmove(merges + best, merges + best + 1, (after + 1) * sizeof(*merges));
    --count;
    if (best + 1 < count) merges[best] = pairs_.Find(tokens[best], tokens[best + 1]);
    if (best > 0) merges[best - 1] = pairs_.Find(tokens[best - 1], tokens[best]);
    if (count == 1) break;
  }
  std::memcpy(out, tokens, count * sizeof(*tokens));
  return count;
}

void PieceMerger::Push(MergeKey merge, uint32_t at) {
  merges_[at] = merge;
  if (merge == kNoMerge) return;
  queue_.Push(uint64_t{RankOf(merge)} << 32 | at);
}

size_t PieceMerger::MergeLong(size_t count, TokenId* out) {
  next_.resize(count);
  previous_.resize(count);
  queue_.Clear();
  for (uint32_t i = 0; i < count; ++i) {
    next_[i] = i + 1 < count ? i + 1 : kNone;
    previous_[i] = i > 0 ? i - 1 : kNone;
    Push(merges_[i], i);
  }
  for (uint64_t least = 0; queue_.Pop(least);) {
    const auto at = static_cast<uint32_t>(least);
    // What was pushed before a neighbour merged is out of date.
    if (merges_[at] == kNoMerge || RankOf(merges_[at]) != least >> 32) continue;
    const uint32_t gone = next_[at];
    tokens_[at] = ResultOf(merges_[at]);
    merges_[gone] = kNoMerge;
    next_[at] = next_[gone];
    if (next_[at] != kNone) previous_[next_[at]] = at;
    Push(next_[at] == kNone ? kNoMerge : pairs_.Find(tokens_[at], tokens_[next_[at]]), at);
    const uint32_t before = previous_[at];
    if (before != kNone) Push(pairs_.Find(tokens_[before], tokens_[at]), before);
  }
  size_t written = 0;
  for (uint32_t i = 0; i != kNone; i = next_[i]) out[written++] = tokens_[i];
  return written;
}

}  // namespace atl
