#ifndef ATOLL_WORKER_DATA_TOKENIZE_ENCODE_BATCH_H_
#define ATOLL_WORKER_DATA_TOKENIZE_ENCODE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/input/json_line.h"
#include "worker/data/input/text_batch.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// Where a document ends in a batch of tokens.
struct DocumentEnd {
  size_t tokens = 0;  // of the batch that come before the next document
  uint64_t hash = 0;  // DocumentHash, if asked for
};

struct TokenBatch {
  std::vector<TokenId> tokens;
  std::vector<DocumentEnd> ends;
  std::vector<BadLine> bad_lines;
};

/// Turns the parts of files into tokens. Each document ends with the tokenizer's end of text. Without such a
/// token, a document of JSON lines ends with a line feed, and a file with its last byte. Documents without
/// text are left out. One for each thread; borrows the tokenizer.
class BatchEncoder {
 public:
  BatchEncoder(const Tokenizer& tokenizer, const std::string& field, bool hash_documents)
      : tokenizer_(tokenizer), hash_documents_(hash_documents), json_(field) {}

  TokenBatch Encode(TextBatch batch);

 private:
  void EncodeLines(std::string text, size_t end, uint64_t line, TokenBatch& out);
  void AddDocument(std::string_view text, TokenBatch& out);

  const Tokenizer& tokenizer_;
  const bool hash_documents_;
  JsonLineReader json_;
  std::vector<TokenId> tokens_;
  std::string with_line_feed_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_ENCODE_BATCH_H_
