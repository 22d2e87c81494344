#ifndef ATOLL_WORKER_DATA_TOKEN_FILE_WRITER_H_
#define ATOLL_WORKER_DATA_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/digest.h"
#include "common/durable_file.h"
#include "core/token_width.h"

namespace atl {

/// Writes one token file (core/token_format.h). It appears under its name only when it is
/// complete: until Finish it is `path`.tmp, which the destructor removes. Not thread-safe.
class TokenFileWriter {
 public:
  /// Replaces what stood at `path` when Finish succeeds.
  static absl::StatusOr<TokenFileWriter> Create(std::string path, TokenWidth width);

  ~TokenFileWriter();
  TokenFileWriter(TokenFileWriter&&) noexcept = default;
  TokenFileWriter& operator=(TokenFileWriter&&) = delete;

  /// ResourceExhausted when the disk is full, or when the file would hold more than kMaxTokensPerFile.
  absl::Status Append(std::span<const TokenId> tokens);

  /// Writes the header, syncs, and renames into place. Returns the SHA-256 of the tokens (hex).
  absl::StatusOr<std::string> Finish();

  uint64_t tokens() const { return tokens_; }

 private:
  TokenFileWriter(DurableFile file, std::string path, TokenWidth width)
      : file_(std::move(file)), path_(std::move(path)), width_(width) {}

  DurableFile file_;
  std::string path_;
  TokenWidth width_;
  Sha256 digest_;
  uint64_t tokens_ = 0;
  std::vector<std::byte> packed_;  // of the tokens being appended
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_FILE_WRITER_H_
