#ifndef ATOLL_WORKER_DATA_INPUT_TEXT_BATCH_H_
#define ATOLL_WORKER_DATA_INPUT_TEXT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/input/input_list.h"

namespace atl {

enum class TextFormat : uint8_t { kText, kJsonLines };

struct BadLine {
  uint64_t line = 0;  // from 1
  std::string why;    // "not JSON: ..."
};

/// What a bad line is when such lines are not left out. InvalidArgument.
absl::Status BadLineError(const std::string& path, const BadLine& bad);

/// A part of one file that is encoded at once.
struct TextBatch {
  TextFormat format = TextFormat::kText;
  std::string text;         // JSON lines: whole lines, each a document
  size_t end = 0;           // what is behind it is only looked at (BpeTokenizer::LastCut)
  uint64_t first_line = 1;  // of JSON lines
  // Plain text: whether the file, which is one document, ends here, and its hash (DocumentHash).
  bool ends_document = false;
  uint64_t hash = 0;
  std::vector<BadLine> bad_lines;  // of plain text, left out
};

struct TextReaderOptions {
  /// See Tokenizer::LastCut.
  std::function<size_t(std::string_view)> last_cut;
  bool skip_bad_lines = false;
  bool hash_documents = false;
  /// Accept plain text that looks like JSON lines.
  bool any_text = false;
  /// Accept plain text that is not UTF-8 (without NUL bytes).
  bool any_encoding = false;
};

/// The parts of one file, in order. Not thread-safe.
class TextReader {
 public:
  virtual ~TextReader() = default;
  /// Replaces `batch`; false at the end. Errors name the file, and the line where there is one.
  virtual absl::StatusOr<bool> Next(TextBatch& batch) = 0;
  /// Bytes of the file used so far.
  virtual uint64_t position() const = 0;
};

absl::StatusOr<std::unique_ptr<TextReader>> OpenPlainText(const InputFile& file,
                                                          const TextReaderOptions& options);
absl::StatusOr<std::unique_ptr<TextReader>> OpenJsonLines(const InputFile& file);

/// The first 64 bits of the SHA-256 of a document's text.
uint64_t DocumentHash(std::string_view text);
/// The same from the digest in hexadecimal digits.
uint64_t DocumentHashOf(std::string_view sha256_hex);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_TEXT_BATCH_H_
