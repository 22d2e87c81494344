#ifndef ATOLL_WORKER_DATA_TOKENIZE_DOCUMENT_SPOOL_H_
#define ATOLL_WORKER_DATA_TOKENIZE_DOCUMENT_SPOOL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/durable_file.h"
#include "core/token_width.h"

namespace atl {

/// How much of a spool is complete.
struct SpoolState {
  struct Bucket {
    uint64_t tokens = 0;
    uint64_t documents = 0;
    uint32_t tokens_crc32c = 0;  // of the bytes in the files
    uint32_t index_crc32c = 0;
  };
  std::vector<Bucket> buckets;  // empty: nothing yet
  uint64_t documents = 0;
  uint64_t tokens = 0;
};

struct SpoolOptions {
  std::string folder;
  TokenWidth width = TokenWidth::kTwoBytes;
  std::optional<uint64_t> shuffle_seed = {};
};

/// Keeps the documents of a text on the disk until all are there, and gives them back in their order or
/// shuffled. Memory is bounded: when it shuffles, it puts the documents into buckets by the first bits of
/// their keys, and sorts one bucket's index at a time. The key of document i is a hash of the seed and i. So
/// the order depends on nothing else. Not thread-safe.
class DocumentSpool {
 public:
  /// Continues at `state`, and drops what was written after it. DataLoss naming a file whose contents are not
  /// those of `state`.
  static absl::StatusOr<DocumentSpool> Open(const SpoolOptions& options, const SpoolState& state);

  DocumentSpool(DocumentSpool&&) noexcept = default;
  DocumentSpool& operator=(DocumentSpool&&) = delete;

  /// The next tokens of the current document.
  absl::Status Append(std::span<const TokenId> tokens);
  /// Ends the current document. One without tokens is none.
  absl::Status EndDocument(bool held_out);

  /// Puts everything on the disk, so that Open can continue at state(). Not in the middle of a document.
  absl::Status Sync();
  const SpoolState& state() const { return state_; }

  /// Documents in their final order, each in one piece or several.
  using Visit = std::function<absl::Status(std::span<const TokenId> tokens, bool held_out)>;
  /// Call it after Sync.
  absl::Status Read(const Visit& visit) const;

  /// Closes and removes the files.
  absl::Status Remove();

 private:
  /// Tokens, and an entry for each document.
  struct BucketFiles {
    DurableFile tokens, index;
    std::vector<std::byte> token_bytes, index_bytes;  // not yet in the files
    uint64_t token_bytes_written = 0, index_bytes_written = 0;
    uint32_t tokens_crc32c = 0, index_crc32c = 0;  // of what is written
  };
  struct Place {
    uint64_t key, offset, length;  // in tokens
    bool held_out;
  };

  explicit DocumentSpool(const SpoolOptions& options) : options_(options) {}
  uint64_t KeyOf(uint64_t document) const;
  size_t BucketOf(uint64_t key) const;
  static absl::Status Flush(BucketFiles& bucket);
  absl::StatusOr<std::vector<Place>> Places(size_t bucket, uint64_t first, uint64_t count,
                                            uint64_t& offset) const;
  absl::Status ReadPlaces(const BucketFiles& bucket, const std::vector<Place>& places,
                          const Visit& visit) const;

  const SpoolOptions options_;
  std::vector<BucketFiles> buckets_;
  SpoolState state_;
  uint64_t current_tokens_ = 0;  // of the current document
  std::vector<std::byte> packed_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_DOCUMENT_SPOOL_H_
