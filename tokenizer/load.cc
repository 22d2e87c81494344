#include "tokenizer/load.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "tokenizer/files.h"

namespace atl {
namespace {

constexpr char kVocab[] = "vocab.json";
constexpr char kMerges[] = "merges.txt";

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

absl::StatusOr<std::string> FileInFolder(const std::string& folder) {
  for (const char* const name : {"tokenizer.json", kVocab}) {
    if (FileExists(JoinPath(folder, name))) return JoinPath(folder, name);
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  std::string found;
  for (const std::string& name : names) {
    if (!name.ends_with(".tiktoken") && name != "tokenizer.model") continue;
    if (!found.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "folder %s has several tokenizers (%s, %s); name one of the files", folder, found, name));
    }
    found = name;
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("folder %s has no tokenizer.json, no vocab.json with merges.txt and no .tiktoken "
                        "file; name the tokenizer's file",
                        folder));
  }
  return JoinPath(folder, found);
}

absl::Status Named(const std::string& file, const absl::Status& status) {
  return {status.code(), absl::StrFormat("%s %s", file, std::string(status.message()))};
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> Finish(const std::string& file,
                                                     absl::StatusOr<BpeModel> model) {
  if (!model.ok()) return Named(file, model.status());
  auto tokenizer = BpeTokenizer::Create(*std::move(model));
  if (!tokenizer.ok()) return Named(file, tokenizer.status());
  return tokenizer;
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadPair(const std::string& folder,
                                                       const std::string& pattern) {
  const std::string vocab_file = JoinPath(folder, kVocab);
  const std::string merges_file = JoinPath(folder, kMerges);
  ATOLL_ASSIGN_OR_RETURN(const std::string vocab, ReadFile(vocab_file, kMaxTokenizerJson));
  ATOLL_ASSIGN_OR_RETURN(const std::string merges, ReadFile(merges_file, kMaxTokenizerJson));
  return Finish(absl::StrFormat("%s with %s", vocab_file, kMerges),
                ParseVocabAndMerges(vocab, merges, pattern));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTokenizer>> LoadTokenizer(const std::string& path,
                                                            const std::string& pattern) {
  std::string file = path;
  if (IsFolder(path)) {
    ATOLL_ASSIGN_OR_RETURN(file, FileInFolder(path));
  }
  const std::filesystem::path parts(file);
  if (parts.filename() == kVocab || parts.filename() == kMerges) {
    return LoadPair(parts.has_parent_path() ? parts.parent_path().string() : ".", pattern);
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxTokenizerJson));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return Finish(file, ParseTokenizerJson(text));
  if (text.size() > kMaxTiktokenFile) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is no JSON, and larger than a .tiktoken file may be (%d MiB)", file, kMaxTiktokenFile >> 20));
  }
  return Finish(file, ParseTiktoken(text, pattern));
}

}  // namespace atl
