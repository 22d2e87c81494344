#include "storage/weights/tokenizer_files.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr uint64_t kMaxTokenizerFileBytes = uint64_t{64} << 20;
constexpr const char* kNames[] = {
    "tokenizer.json",     "tokenizer_config.json", "vocab.json",        "merges.txt",
    "vocab.txt",          "tokenizer.model",       "added_tokens.json", "special_tokens_map.json",
    "chat_template.jinja"};
// The first one that has an id counts.
constexpr const char* kIdFiles[] = {"generation_config.json", "config.json"};

absl::StatusOr<HfTokenIds> ReadIds(const std::string& folder, uint32_t vocabulary) {
  HfTokenIds ids;
  for (const char* const name : kIdFiles) {
    const auto text = ReadFile(JoinPath(folder, name), kMaxHfConfigBytes);
    if (absl::IsNotFound(text.status())) continue;
    ATOLL_RETURN_IF_ERROR(text.status());
    HfTokenIds found = TokenIdsOf(*text, vocabulary);
    if (!ids.begin) ids.begin = found.begin;
    if (ids.ends.empty()) ids.ends = std::move(found.ends);
  }
  return ids;
}

}  // namespace

absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& folder, uint32_t vocabulary) {
  ATOLL_RETURN_IF_ERROR(ListDir(folder).status());
  TokenizerFiles tokenizer;
  for (const char* const name : kNames) {
    const std::string path = JoinPath(folder, name);
    auto contents = ReadFile(path, kMaxTokenizerFileBytes);
    if (absl::IsNotFound(contents.status())) continue;
    ATOLL_RETURN_IF_ERROR(contents.status());
    if (std::string_view(name).ends_with(".json") && !nlohmann::json::accept(*contents)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is not JSON; fetch it again"));
    }
    tokenizer.files.push_back({.name = name, .contents = *std::move(contents)});
  }
  if (tokenizer.files.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("%s has no file of a tokenizer: none of %s", folder, absl::StrJoin(kNames, ", ")));
  }
  ATOLL_ASSIGN_OR_RETURN(tokenizer.ids, ReadIds(folder, vocabulary));
  return tokenizer;
}

}  // namespace atl
