#include "cli/doctor/tokens.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/file.h"
#include "common/human.h"
#include "common/status.h"
#include "core/token_format.h"
#include "core/tokenizer_names.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr uint64_t kMostMetaBytes = 1 << 20;

struct TokenCounts {
  uint64_t train = 0;
  uint64_t held_out = 0;
};

/// By its first word. Whether it is a token file at all, atoll-data inspect says.
TokenWidth WidthOf(const std::string& path) {
  int32_t magic = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&magic), sizeof(magic));
  const auto format = FormatOfMagic(magic);
  return format ? format->width : TokenWidth::kTwoBytes;
}

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostMetaBytes));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrFormat("%s is not JSON", path));
  return json;
}

uint64_t NumberOf(const nlohmann::json& entry, const char* name) {
  const auto found = entry.is_object() ? entry.find(name) : entry.end();
  return found != entry.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

/// As meta.json lists them, for files of any format and name; nullopt: it lists none.
std::optional<TokenCounts> ListedTokens(const std::string& folder) {
  const absl::StatusOr<nlohmann::json> meta = ReadJson(JoinPath(folder, "meta.json"));
  if (!meta.ok() || !meta->contains("train") || !meta->contains("validation")) return std::nullopt;
  TokenCounts found;
  for (const nlohmann::json& entry : (*meta)["train"]) found.train += NumberOf(entry, "tokens");
  found.held_out = NumberOf((*meta)["validation"], "tokens");
  return found.train > 0 ? std::optional(found) : std::nullopt;
}

/// A dataset of a mixture, as its meta.json lists it.
struct ListedPart {
  std::string folder;
  uint64_t weight = 0;
  TokenCounts tokens;
};

std::string StringOf(const nlohmann::json& entry, const char* name) {
  const auto found = entry.is_object() ? entry.find(name) : entry.end();
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The dataset must be there, and the one that the mixture was made of.
absl::Status CheckPart(const std::string& folder, const std::string& part, const std::string& fingerprint) {
  const std::string path = part.starts_with('/') ? part : JoinPath(folder, part);
  const absl::StatusOr<nlohmann::json> meta = ReadJson(JoinPath(path, "meta.json"));
  if (meta.ok() && StringOf(*meta, "fingerprint") == fingerprint) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("the mixture %s was made of the dataset %s, and at %s is %s; copy the dataset there, "
                      "or make the mixture "
                      "again with atoll-data mix",
                      folder, part, path, meta.ok() ? "another dataset" : "none"));
}

/// Empty: the folder is no mixture.
absl::StatusOr<std::vector<ListedPart>> ListedParts(const std::string& folder) {
  const absl::StatusOr<nlohmann::json> meta = ReadJson(JoinPath(folder, "meta.json"));
  std::vector<ListedPart> parts;
  if (!meta.ok() || !meta->contains("mixture")) return parts;
  for (const nlohmann::json& entry : (*meta)["mixture"]) {
    ListedPart part{.folder = StringOf(entry, "folder"),
                    .weight = NumberOf(entry, "weight"),
                    .tokens = {NumberOf(entry, "train_tokens"), NumberOf(entry, "held_out_tokens")}};
    if (part.folder.empty() || part.weight == 0 || part.tokens.train == 0) {
      return absl::DataLossError(absl::StrFormat(
          "the description of the mixture %s is damaged; make it again with atoll-data mix", folder));
    }
    ATOLL_RETURN_IF_ERROR(CheckPart(folder, part.folder, StringOf(entry, "fingerprint")));
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::Status CheckReadable(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat("%s cannot be read", path));
}

absl::StatusOr<TokenCounts> CountTokens(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  const std::optional<TokenCounts> listed = ListedTokens(folder);
  TokenCounts found;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".bin") && !absl::EndsWith(name, ".ds")) continue;
    const std::string path = JoinPath(folder, name);
    ATOLL_RETURN_IF_ERROR(CheckReadable(path));
    if (listed) continue;
    ATOLL_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(path));
    const uint64_t tokens =
        (bytes - std::min<uint64_t>(bytes, kTokenHeaderBytes)) / BytesPerToken(WidthOf(path));
    if (absl::StrContains(name, "train")) found.train += tokens;
    if (absl::StrContains(name, "val")) found.held_out += tokens;
  }
  if (listed) return *listed;
  if (found.train == 0) return absl::NotFoundError(absl::StrFormat("no *train*.bin in %s", folder));
  return found;
}

absl::StatusOr<nlohmann::json> ReadMeta(const std::string& folder) {
  const std::string path = JoinPath(folder, "meta.json");
  if (!FileExists(path)) {
    return absl::NotFoundError(absl::StrFormat(
        "no meta.json in %s; for shards of llm.c or modded-nanogpt run: atoll-data adopt %s --tokenizer gpt2 "
        "--vocabulary 50257",
        folder, folder));
  }
  return ReadJson(path);
}

absl::StatusOr<std::string> DescribeTokens(const std::string& folder, const nlohmann::json& meta,
                                           const std::optional<ConfiguredTokens>& configured) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ListedPart> parts, ListedParts(folder));
  TokenCounts counts;
  if (parts.empty()) {
    ATOLL_ASSIGN_OR_RETURN(counts, CountTokens(folder));
  }
  for (const ListedPart& part : parts) {
    counts.train += part.tokens.train;
    counts.held_out += part.tokens.held_out;
  }
  const std::string text = absl::StrFormat(
      "%s%s training tokens, %s held out",
      parts.empty() ? "" : absl::StrFormat("a mixture of %d datasets: ", parts.size()),
      HumanCount(static_cast<double>(counts.train)), HumanCount(static_cast<double>(counts.held_out)));
  const auto found = meta.find("vocabulary");
  if (found == meta.end() || !found->is_number_unsigned()) return text;
  const auto tokens = found->get<uint64_t>();
  if (configured && tokens > configured->vocabulary) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the token files have a vocabulary of %d, but %s.vocabulary is %d", tokens,
                        configured->section, configured->vocabulary));
  }
  return absl::StrFormat("%s, a vocabulary of %d", text, tokens);
}

}  // namespace

absl::StatusOr<std::vector<TextShare>> TextsOf(const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<ListedPart> parts, ListedParts(folder));
  std::vector<TextShare> texts;
  if (parts.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const TokenCounts counts, CountTokens(folder));
    texts.push_back({.name = "", .tokens = counts.train, .share = 1});
  }
  double weights = 0;
  for (const ListedPart& part : parts) weights += static_cast<double>(part.weight);
  for (ListedPart& part : parts) {
    texts.push_back({.name = std::move(part.folder),
                     .tokens = part.tokens.train,
                     .share = static_cast<double>(part.weight) / weights});
  }
  return texts;
}

Check JudgeTokenizer(const std::optional<std::string>& configured,
                     const std::optional<std::string>& recorded) {
  constexpr char kName[] = "tokenizer";
  if (recorded && recorded->empty()) {
    return Fail(kName, "meta.json does not name the tokenizer that made the token files",
                "remove meta.json, then describe the files again with atoll-data adopt, or make them again "
                "with atoll-data tokenize");
  }
  if (configured && recorded && *configured != *recorded) {
    return Fail(
        kName,
        absl::StrFormat("'%s' made the token files, but data.tokenizer is '%s'", *recorded, *configured),
        absl::StrFormat("set data.tokenizer: %s, or give token files that '%s' made; workers with these "
                        "files cannot join",
                        *recorded, *configured));
  }
  const std::string& name = configured ? *configured : recorded.value();
  const bool known =
      std::find(std::begin(kTokenizerNames), std::end(kTokenizerNames), name) != std::end(kTokenizerNames);
  std::string text = absl::StrFormat("'%s'", name);
  if (configured && recorded) text += " made the token files, as data.tokenizer says";
  if (known) return Ok(kName, text);
  if (recorded) return Ok(kName, text + " (atoll-model generate needs its file: --tokenizer)");
  return Warn(kName, text + "; nothing here shows whether the workers' token files have it",
              "check the token files with --data; make them with atoll-data tokenize --tokenizer FILE, or "
              "describe existing ones with atoll-data adopt");
}

std::vector<Check> CheckTokens(const std::string& folder, const std::optional<ConfiguredTokens>& configured) {
  const auto wanted = configured ? std::optional(configured->tokenizer) : std::nullopt;
  if (folder.empty()) {
    return configured ? std::vector{JudgeTokenizer(wanted, std::nullopt)} : std::vector<Check>();
  }
  const auto failed = [](const absl::Status& status) {
    return Fail("token files", static_cast<std::string>(status.message()),
                "make them with atoll-data tokenize, or describe existing ones with atoll-data adopt; "
                "data.tokenizer and the model's vocabulary must match");
  };
  const auto meta = ReadMeta(folder);
  if (!meta.ok()) return {failed(meta.status())};
  const auto text = DescribeTokens(folder, *meta, configured);
  const auto named = meta->find("tokenizer");
  const std::string recorded = named != meta->end() && named->is_string() ? named->get<std::string>() : "";
  return {text.ok() ? Ok("token files", *text + " (atoll-data inspect checks every byte)")
                    : failed(text.status()),
          JudgeTokenizer(wanted, recorded)};
}

std::vector<Check> CheckDataOfOwnLoop(const std::string& folder) {
  if (folder.empty()) return {};
  const auto names = ListDir(folder);
  if (!names.ok()) {
    return {Fail("data", std::string(names.status().message()), "give the folder of this worker's data")};
  }
  if (std::ranges::find(*names, "meta.json") != names->end()) return CheckTokens(folder, std::nullopt);
  return {Ok("data", folder + " has no token files; workers of an external model read their own data")};
}

}  // namespace atl
