#include "worker/data/tokenize/document_spool.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/data/token_view.h"

namespace atl {
namespace {

// Two files are open for each.
constexpr int kBucketBits = 7;
constexpr size_t kShuffleBuckets = size_t{1} << kBucketBits;
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr uint64_t kPieceTokens = uint64_t{1} << 20;
constexpr uint64_t kPlacesAtOnce = uint64_t{1} << 16;
constexpr uint64_t kShufflePurpose = 0x73687566666c65;

/// Of the index: key, and twice the number of tokens, plus one for held-out documents.
struct IndexEntry {
  uint64_t key, length_and_side;
};

std::string FileName(const char* what, size_t bucket) { return absl::StrFormat("%s-%03d.tmp", what, bucket); }

absl::Status CutTo(uint64_t bytes, DurableFile& file) {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size >= bytes) return file.Truncate(bytes);
  return absl::DataLossError(
      absl::StrFormat("temporary file %s: %d bytes, but %d were written; remove its folder and start again",
                      file.path(), size, bytes));
}

absl::Status CheckContents(const DurableFile& file, uint64_t bytes, uint32_t crc32c) {
  std::vector<std::byte> piece(kPieceTokens);
  uint32_t found = 0;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), bytes - at));
    ATOLL_RETURN_IF_ERROR(file.ReadAt(at, piece));
    found = Crc32c(std::span<const std::byte>(piece), found);
  }
  if (found == crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "temporary file %s was changed or is damaged; remove its folder and start again", file.path()));
}

}  // namespace

absl::StatusOr<DocumentSpool> DocumentSpool::Open(const SpoolOptions& options, const SpoolState& state) {
  DocumentSpool spool(options);
  spool.state_ = state;
  spool.state_.buckets.resize(options.shuffle_seed ? kShuffleBuckets : 1);
  for (size_t i = 0; i < spool.state_.buckets.size(); ++i) {
    BucketFiles files;
    ATOLL_ASSIGN_OR_RETURN(files.tokens, DurableFile::Open(JoinPath(options.folder, FileName("tokens", i)),
                                                           OpenMode::kCreateOrOpen));
    ATOLL_ASSIGN_OR_RETURN(files.index, DurableFile::Open(JoinPath(options.folder, FileName("index", i)),
                                                          OpenMode::kCreateOrOpen));
    files.token_bytes_written = spool.state_.buckets[i].tokens * BytesPerToken(options.width);
    files.index_bytes_written = spool.state_.buckets[i].documents * sizeof(IndexEntry);
    ATOLL_RETURN_IF_ERROR(CutTo(files.token_bytes_written, files.tokens));
    ATOLL_RETURN_IF_ERROR(CutTo(files.index_bytes_written, files.index));
    files.tokens_crc32c = spool.state_.buckets[i].tokens_crc32c;
    files.index_crc32c = spool.state_.buckets[i].index_crc32c;
    ATOLL_RETURN_IF_ERROR(CheckContents(files.tokens, files.token_bytes_written, files.tokens_crc32c));
    ATOLL_RETURN_IF_ERROR(CheckContents(files.index, files.index_bytes_written, files.index_crc32c));
    spool.buckets_.push_back(std::move(files));
  }
  return spool;
}

uint64_t DocumentSpool::KeyOf(uint64_t document) const {
  if (!options_.shuffle_seed) return 0;
  return SplitMix64(DeriveSeed(*options_.shuffle_seed, kShufflePurpose) ^ SplitMix64(document));
}

size_t DocumentSpool::BucketOf(uint64_t key) const {
  return options_.shuffle_seed ? static_cast<size_t>(key >> (64 - kBucketBits)) : 0;
}

absl::Status DocumentSpool::Append(std::span<const TokenId> tokens) {
  const size_t number = BucketOf(KeyOf(state_.documents));
  BucketFiles& bucket = buckets_[number];
  PackTokens(tokens, options_.width, packed_);
  bucket.token_bytes.insert(bucket.token_bytes.end(), packed_.begin(), packed_.end());
  current_tokens_ += tokens.size();
  return bucket.token_bytes.size() < kBufferBytes ? absl::OkStatus() : Flush(bucket);
}

absl::Status DocumentSpool::EndDocument(bool held_out) {
  if (current_tokens_ == 0) return absl::OkStatus();
  const uint64_t key = KeyOf(state_.documents);
  const size_t number = BucketOf(key);
  BucketFiles& bucket = buckets_[number];
  const IndexEntry entry{key, current_tokens_ << 1 | (held_out ? 1 : 0)};
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  bucket.index_bytes.insert(bucket.index_bytes.end(), bytes.begin(), bytes.end());
  state_.buckets[number].tokens += current_tokens_;
  ++state_.buckets[number].documents;
  state_.tokens += current_tokens_;
  ++state_.documents;
  current_tokens_ = 0;
  return bucket.index_bytes.size() < kBufferBytes ? absl::OkStatus() : Flush(bucket);
}

absl::Status DocumentSpool::Flush(BucketFiles& bucket) {
  ATOLL_RETURN_IF_ERROR(bucket.tokens.WriteAt(bucket.token_bytes_written, bucket.token_bytes));
  bucket.token_bytes_written += bucket.token_bytes.size();
  bucket.tokens_crc32c = Crc32c(std::span<const std::byte>(bucket.token_bytes), bucket.tokens_crc32c);
  bucket.token_bytes.clear();
  ATOLL_RETURN_IF_ERROR(bucket.index.WriteAt(bucket.index_bytes_written, bucket.index_bytes));
  bucket.index_bytes_written += bucket.index_bytes.size();
  bucket.index_crc32c = Crc32c(std::span<const std::byte>(bucket.index_bytes), bucket.index_crc32c);
  bucket.index_bytes.clear();
  return absl::OkStatus();
}

absl::Status DocumentSpool::Sync() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    BucketFiles& bucket = buckets_[i];
    ATOLL_RETURN_IF_ERROR(Flush(bucket));
    ATOLL_RETURN_IF_ERROR(bucket.tokens.Sync());
    ATOLL_RETURN_IF_ERROR(bucket.index.Sync());
    state_.buckets[i].tokens_crc32c = bucket.tokens_crc32c;
    state_.buckets[i].index_crc32c = bucket.index_crc32c;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DocumentSpool::Place>> DocumentSpool::Places(size_t bucket, uint64_t first,
                                                                        uint64_t count,
                                                                        uint64_t& offset) const {
  std::vector<IndexEntry> entries(count);
  ATOLL_RETURN_IF_ERROR(
      buckets_[bucket].index.ReadAt(first * sizeof(IndexEntry), std::as_writable_bytes(std::span(entries))));
  std::vector<Place> places;
  places.reserve(count);
  for (const IndexEntry& entry : entries) {
    const uint64_t length = entry.length_and_side >> 1;
    places.push_back(
        {.key = entry.key, .offset = offset, .length = length, .held_out = (entry.length_and_side & 1) != 0});
    offset += length;
  }
  return places;
}

absl::Status DocumentSpool::ReadPlaces(const BucketFiles& bucket, const std::vector<Place>& places,
                                       const Visit& visit) const {
  const size_t each = BytesPerToken(options_.width);
  std::vector<std::byte> bytes;
  std::vector<TokenId> tokens;
  for (const Place& place : places) {
    for (uint64_t at = 0; at < place.length; at += tokens.size()) {
      tokens.resize(std::min(kPieceTokens, place.length - at));
      bytes.resize(tokens.size() * each);
      ATOLL_RETURN_IF_ERROR(bucket.tokens.ReadAt((place.offset + at) * each, bytes));
      UnpackTokens(bytes, options_.width, tokens);
      ATOLL_RETURN_IF_ERROR(visit(tokens, place.held_out));
    }
  }
  return absl::OkStatus();
}

absl::Status DocumentSpool::Read(const Visit& visit) const {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const uint64_t documents = state_.buckets[i].documents;
    const uint64_t at_once = options_.shuffle_seed ? std::max<uint64_t>(documents, 1) : kPlacesAtOnce;
    uint64_t offset = 0;
    for (uint64_t first = 0; first < documents; first += at_once) {
      ATOLL_ASSIGN_OR_RETURN(std::vector<Place> places,
                             Places(i, first, std::min(at_once, documents - first), offset));
      if (options_.shuffle_seed) {
        std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
          return std::tie(a.key, a.offset) < std::tie(b.key, b.offset);
        });
      }
      ATOLL_RETURN_IF_ERROR(ReadPlaces(buckets_[i], places, visit));
    }
  }
  return absl::OkStatus();
}

absl::Status DocumentSpool::Remove() {
  for (BucketFiles& bucket : buckets_) {
    for (DurableFile* const file : {&bucket.tokens, &bucket.index}) {
      const std::string path = file->path();
      ATOLL_RETURN_IF_ERROR(file->Close());
      ATOLL_RETURN_IF_ERROR(RemoveFile(path));
    }
  }
  buckets_.clear();
  return absl::OkStatus();
}

}  // namespace atl
