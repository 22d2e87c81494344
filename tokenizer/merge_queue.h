#ifndef ATOLL_TOKENIZER_MERGE_QUEUE_H_
#define ATOLL_TOKENIZER_MERGE_QUEUE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace atl {

/// The smallest of 64-bit keys first. A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): as long as no key
/// is smaller than the last one taken, a key moves at most 64 times, so that n keys take linear time. Merges
/// of trained vocabularies are so: a token has a larger rank than its parts. Keys of others that are smaller
/// go through a binary heap. Not thread-safe.
class MergeQueue {
 public:
  void Clear() {
    for (auto& bucket : buckets_) bucket.clear();
    smaller_.clear();
    filled_ = 0;
    last_ = 0;
  }

  void Push(uint64_t key) {
    if (key >= last_) {
      Place(key);
      return;
    }
    smaller_.push_back(key);
    std::push_heap(smaller_.begin(), smaller_.end(), std::greater<>());
  }

  /// False: it is empty.
  bool Pop(uint64_t& key) {
    if (!smaller_.empty()) {
      std::pop_heap(smaller_.begin(), smaller_.end(), std::greater<>());
      key = smaller_.back();
      smaller_.pop_back();
      return true;
    }
    if (buckets_[0].empty() && !Refill()) return false;
    key = last_;
    buckets_[0].pop_back();
    return true;
  }

 private:
  /// Bucket 0 has the keys equal to last_; bucket i those whose highest different bit is bit i - 1.
  void Place(uint64_t key) {
    const int bucket = 64 - std::countl_zero(key ^ last_);
    buckets_[static_cast<size_t>(bucket)].push_back(key);
    if (bucket > 0) filled_ |= uint64_t{1} << (bucket - 1);
  }

  /// Spreads the first bucket with keys over those below it.
  bool Refill() {
    if (filled_ == 0) return false;
    const int first = std::countr_zero(filled_) + 1;
    filled_ &= filled_ - 1;
    std::vector<uint64_t>& from = buckets_[static_cast<size_t>(first)];
    last_ = *std::min_element(from.begin(), from.end());
    for (const uint64_t key : from) Place(key);
    from.clear();
    return true;
  }

  std::array<std::vector<uint64_t>, 65> buckets_;
  std::vector<uint64_t> smaller_;  // than last_: a binary heap
  uint64_t filled_ = 0;            // bit i - 1: bucket i has keys
  uint64_t last_ = 0;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_MERGE_QUEUE_H_
