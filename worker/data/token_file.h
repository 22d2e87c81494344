#ifndef ATOLL_WORKER_DATA_TOKEN_FILE_H_
#define ATOLL_WORKER_DATA_TOKEN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/mapped_file.h"
#include "core/token_width.h"
#include "worker/data/token_layout.h"
#include "worker/data/token_view.h"

namespace atl {

/// Tokens of one file of llm.c, Megatron or datatrove (worker/data/token_layout.h), memory-mapped. Immutable
/// and thread-safe.
class TokenFile {
 public:
  /// Maps the file and checks it whole: layout, size, and that every token is below `vocabulary` (one
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

  /// SHA-256 of tokens() as they lie in the file, in hexadecimal digits. Reads in pieces, and asks `go_on`
  /// before each; Cancelled if it says no. NotFound as above.
  absl::StatusOr<std::string> Digest(const std::function<bool()>& go_on) const;

  /// When the file was written to, in nanoseconds since 1970; 0 where that cannot be known.
  int64_t ModifiedNanos() const;

  const std::string& path() const { return file_.path(); }
  /// "llm.c", "Megatron" or "datatrove".
  std::string_view format() const { return layout_.format; }

 private:
  TokenFile(MappedFile file, FileDescriptor descriptor, const TokenLayout& layout, const TokenView& tokens)
      : file_(std::move(file)), descriptor_(std::move(descriptor)), layout_(layout), tokens_(tokens) {}

  /// bytes.size() bytes from token `first` on.
  absl::Status ReadBytes(uint64_t first, std::span<std::byte> bytes) const;

  MappedFile file_;
  FileDescriptor descriptor_;  // of the same file, also when another one takes its name
  TokenLayout layout_;
  TokenView tokens_;
  uint64_t first_ = 0;  // of tokens_ in the file
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_FILE_H_
