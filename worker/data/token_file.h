#ifndef ATOLL_WORKER_DATA_TOKEN_FILE_H_
#define ATOLL_WORKER_DATA_TOKEN_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/mapped_file.h"
#include "core/token_width.h"
#include "worker/data/token_view.h"

namespace atl {

/// Tokens of one llm.c .bin file (core/token_format.h), memory-mapped. Immutable and thread-safe.
class TokenFile {
 public:
  /// Maps the file and checks it whole: header, size, and that every token is below `vocabulary` (one
  /// sequential pass, some GB/s once the file is cached). NotFound when it is not there; InvalidArgument,
  /// naming the file and what is wrong, when it is no token file, is truncated, or holds a token outside the
  /// vocabulary.
  static absl::StatusOr<TokenFile> Open(const std::string& path, uint32_t vocabulary);

  /// Leaves only this part in tokens(). Requires first + count <= size().
  void Keep(uint64_t first, uint64_t count) {
    tokens_ = tokens_.subspan(first, count);
    first_ += first;
  }

  /// The mapped tokens, for a whole pass after Open: reading them when the file was shortened since ends the
  /// process (SIGBUS). Use Read while other programs may be at work.
  const TokenView& tokens() const { return tokens_; }
  uint64_t size() const { return tokens_.size(); }

  /// Copies tokens [first, first + out.size()). Requires first + out.size() <= size(). NotFound naming the
  /// file when it was shortened since Open.
  absl::Status Read(uint64_t first, std::span<TokenId> out) const;

  const std::string& path() const { return file_.path(); }

 private:
  TokenFile(MappedFile file, FileDescriptor descriptor, const TokenView& tokens)
      : file_(std::move(file)), descriptor_(std::move(descriptor)), tokens_(tokens) {}

  MappedFile file_;
  FileDescriptor descriptor_;  // of the same file, also when another one takes its name
  TokenView tokens_;
  uint64_t first_ = 0;  // of tokens_ in the file
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_FILE_H_
