#ifndef ATOLL_WORKER_DATA_DATASET_WRITER_H_
#define ATOLL_WORKER_DATA_DATASET_WRITER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/dataset_description.h"
#include "worker/data/token_file_writer.h"

namespace atl {

struct DatasetWriterOptions {
  std::string folder;  // exists
  std::string tokenizer;
  uint32_t vocabulary = 0;
  std::optional<TokenId> end_of_text = {};
  uint64_t tokens_per_file = uint64_t{1} << 28;  // of training files; 1 to kMaxTokensPerFile
};

/// Writes a dataset folder (worker/data/dataset.h): train_000.bin and so on, val.bin, and at the end
/// meta.json. The two texts may come in any order. Not thread-safe.
class DatasetWriter {
 public:
  explicit DatasetWriter(DatasetWriterOptions options);

  absl::Status AddTrain(std::span<const TokenId> tokens);
  absl::Status AddHeldOut(std::span<const TokenId> tokens);
  /// InvalidArgument if a text has no token.
  absl::StatusOr<DatasetDescription> Finish();

 private:
  absl::Status EndTrainFile();

  const DatasetWriterOptions options_;
  const TokenWidth width_;
  DatasetDescription description_;
  std::optional<TokenFileWriter> train_;
  std::string train_name_;
  std::optional<TokenFileWriter> held_out_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_DATASET_WRITER_H_
