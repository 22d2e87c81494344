#include "worker/data/tokenize/journal.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/json_integer.h"
#include "common/status.h"

namespace atl {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 20;

std::string JournalPath(const std::string& folder) { return JoinPath(folder, "journal.json"); }

}  // namespace

absl::Status WriteJournal(const std::string& folder, const Journal& journal) {
  Json buckets = Json::array();
  for (const SpoolState::Bucket& bucket : journal.spool.buckets) {
    buckets.push_back({bucket.tokens, bucket.documents, bucket.tokens_crc32c, bucket.index_crc32c});
  }
  const Json json = {{"version", kVersion},
                     {"job", journal.job},
                     {"inputs", journal.inputs},
                     {"inputs_digest", journal.inputs_digest},
                     {"buckets", std::move(buckets)},
                     {"documents", journal.spool.documents},
                     {"tokens", journal.spool.tokens},
                     {"skipped_lines", journal.skipped_lines},
                     {"skipped_bytes", journal.skipped_bytes}};
  return WriteFileAtomically(JournalPath(folder), json.dump());
}

absl::StatusOr<Journal> ReadJournal(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(JournalPath(folder), kMaxBytes));
  Journal journal;
  try {
    const Json json = Json::parse(text);
    if (JsonInteger<int>(json.at("version")) != kVersion)
      return absl::NotFoundError("a journal of another version");
    journal.job = json.at("job").get<std::string>();
    journal.inputs = JsonInteger<uint64_t>(json.at("inputs"));
    journal.inputs_digest = json.at("inputs_digest").get<std::string>();
    for (const Json& bucket : json.at("buckets")) {
      journal.spool.buckets.push_back({.tokens = JsonInteger<uint64_t>(bucket.at(0)),
                                       .documents = JsonInteger<uint64_t>(bucket.at(1)),
                                       .tokens_crc32c = JsonInteger<uint32_t>(bucket.at(2)),
                                       .index_crc32c = JsonInteger<uint32_t>(bucket.at(3))});
    }
    journal.spool.documents = JsonInteger<uint64_t>(json.at("documents"));
    journal.spool.tokens = JsonInteger<uint64_t>(json.at("tokens"));
    journal.skipped_lines = JsonInteger<uint64_t>(json.at("skipped_lines"));
    journal.skipped_bytes = JsonInteger<uint64_t>(json.at("skipped_bytes"));
  } catch (const std::exception& error) {
    return absl::NotFoundError(absl::StrCat("a damaged journal: ", error.what()));
  }
  return journal;
}

absl::Status RemoveJournal(const std::string& folder) { return RemoveFile(JournalPath(folder)); }

}  // namespace atl
