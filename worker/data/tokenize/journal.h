#ifndef ATOLL_WORKER_DATA_TOKENIZE_JOURNAL_H_
#define ATOLL_WORKER_DATA_TOKENIZE_JOURNAL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/tokenize/document_spool.h"

namespace atl {

/// What a tokenization has done, in its temporary folder: a later process continues there.
struct Journal {
  std::string job;                 // digest of what decides the tokens: tokenizer, options, held-out files
  uint64_t inputs = 0;             // read to their end
  std::string inputs_digest = {};  // of their names, sizes and times
  SpoolState spool = {};
  uint64_t skipped_lines = 0;
  uint64_t skipped_bytes = 0;  // of the list of skipped lines
};

/// Replaces the journal of the folder. It survives a power cut.
absl::Status WriteJournal(const std::string& folder, const Journal& journal);

/// NotFound without a journal, also if it is damaged or of another version of Atoll.
absl::StatusOr<Journal> ReadJournal(const std::string& folder);

absl::Status RemoveJournal(const std::string& folder);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZE_JOURNAL_H_
