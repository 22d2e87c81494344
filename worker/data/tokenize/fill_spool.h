#ifndef ATOLL_WORKER_DATA_TOKENIZE_FILL_SPOOL_H_
#define ATOLL_WORKER_DATA_TOKENIZE_FILL_SPOOL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "worker/data/input/input_list.h"
#include "worker/data/tokenize/document_spool.h"
#include "worker/data/tokenize/journal.h"
#include "worker/data/tokenize/tokenize.h"

namespace atl {

struct TextInputs {
  std::vector<InputFile> files;
  size_t trained = 0;  // the files from this one on are held out

  /// Of the names, sizes and times of the first `count` files, and which of them are held out.
  std::string Digest(uint64_t count) const;
};

/// Encodes the inputs behind `journal` into the spool, and records in `folder` what is done. A record costs
/// disk time, so there is one when the time since the last one is twenty times what it took. Files that
/// cannot be read again, such as pipes, end the records.
absl::Status FillSpool(const Tokenizer& tokenizer, const TokenizeOptions& options, const TextInputs& inputs,
                       const std::string& folder, const Clock& clock, const TokenizeEvents& events,
                       Journal& journal, DocumentSpool& spool);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_FILL_SPOOL_H_
