#ifndef ATOLL_WORKER_DATA_TOKENIZE_TEXT_ITEMS_H_
#define ATOLL_WORKER_DATA_TOKENIZE_TEXT_ITEMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/data/input/input_list.h"
#include "worker/data/input/text_batch.h"
#include "worker/data/tokenize/encode_batch.h"

namespace atl {

/// A step through the inputs.
struct TextItem {
  size_t input = 0;
  bool ends_input = false;
  uint64_t position = 0;     // bytes of all inputs that are read
  absl::Status status = {};  // an error ends the items
  TextBatch batch = {};
};

/// The same after encoding.
struct TokenItem {
  size_t input = 0;
  bool ends_input = false;
  uint64_t position = 0;
  absl::Status status;
  TokenBatch batch;
};

/// Reads the inputs from one of them on.
class TextItems {
 public:
  TextItems(std::vector<InputFile> inputs, size_t first, TextFormat format, TextReaderOptions options)
      : inputs_(std::move(inputs)), input_(first), format_(format), options_(std::move(options)) {}

  /// nullopt: the end.
  std::optional<TextItem> Next();

 private:
  const std::vector<InputFile> inputs_;
  size_t input_;
  const TextFormat format_;
  const TextReaderOptions options_;
  std::unique_ptr<TextReader> reader_;
  uint64_t before_ = 0;  // bytes of the inputs that have ended
  bool failed_ = false;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_TEXT_ITEMS_H_
