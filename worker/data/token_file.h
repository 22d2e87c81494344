#ifndef ATOLL_WORKER_DATA_TOKEN_FILE_H_
#define ATOLL_WORKER_DATA_TOKEN_FILE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/mapped_file.h"

namespace atoll {

/// Tokens of one llm.c .bin file (token_format.h), memory-mapped. Immutable and thread-safe.
class TokenFile {
 public:
  /// Maps the file and checks it whole: header, size, and that every token is below `vocabulary` (one
  /// sequential pass, some GB/s once the file is cached). NotFound when it is not there; InvalidArgument,
  /// naming the file and what is wrong, when it is no token file, is truncated, or holds a token outside the
  /// vocabulary.
  static absl::StatusOr<TokenFile> Open(const std::string& path, uint32_t vocabulary);

  /// Leaves only this part in tokens(). Requires first + count <= tokens().size().
  void Keep(uint64_t first, uint64_t count) { tokens_ = tokens_.subspan(first, count); }

  std::span<const uint16_t> tokens() const { return tokens_; }
  const std::string& path() const { return file_.path(); }

 private:
  TokenFile(MappedFile file, std::span<const uint16_t> tokens) : file_(std::move(file)), tokens_(tokens) {}

  MappedFile file_;
  std::span<const uint16_t> tokens_;
};

}  // namespace atoll

#endif  // ATOLL_WORKER_DATA_TOKEN_FILE_H_
