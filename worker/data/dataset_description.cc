#include "worker/data/dataset_description.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "common/json_integer.h"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

std::string EntryLine(const TokenFileEntry& entry) {
  return absl::StrCat(entry.name, " ", entry.tokens, " ", entry.sha256, "\n");
}

Json EntryToJson(const TokenFileEntry& entry) {
  Json json = {{"name", entry.name}, {"tokens", entry.tokens}, {"sha256", entry.sha256}};
  if (entry.whole()) return json;
  json["first"] = entry.first;
  json["file_tokens"] = entry.file_tokens;
  return json;
}

TokenFileEntry EntryFromJson(const Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .tokens = JsonInteger<uint64_t>(json.at("tokens")),
          .sha256 = json.at("sha256").get<std::string>(),
          .first = JsonInteger<uint64_t>(json, "first", 0),
          .file_tokens = JsonInteger<uint64_t>(json, "file_tokens", 0)};
}

absl::Status IsAMixture(const std::string& path, const Json& parts) {
  std::string names;
  for (const Json& part : parts) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", part.at("folder").get<std::string>());
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset description ", path,
                                                 ": this folder is a mixture of other datasets (", names,
                                                 "), which has no text of its own; name one of those"));
}

}  // namespace

std::string Fingerprint(const DatasetDescription& description) {
  std::string text = absl::StrCat(description.tokenizer, " ", description.vocabulary, "\n");
  for (const TokenFileEntry& entry : description.train) text += EntryLine(entry);
  text += EntryLine(description.validation);
  return Sha256Hex(text);
}

std::string DescriptionToJson(const DatasetDescription& description) {
  Json json;
  json["tokenizer"] = description.tokenizer;
  json["vocabulary"] = description.vocabulary;
  if (description.end_of_text) json["end_of_text"] = *description.end_of_text;
  json["train"] = Json::array();
  for (const TokenFileEntry& entry : description.train) json["train"].push_back(EntryToJson(entry));
  json["validation"] = EntryToJson(description.validation);
  json["fingerprint"] = description.fingerprint;
  return json.dump(2) + "\n";
}

absl::StatusOr<DatasetDescription> DescriptionFromJson(const std::string& path, const std::string& text) {
  DatasetDescription description;
  try {
    const Json json = Json::parse(text);
    if (json.contains("mixture")) return IsAMixture(path, json.at("mixture"));
    description.tokenizer = json.at("tokenizer").get<std::string>();
    description.vocabulary = JsonInteger<uint32_t>(json.at("vocabulary"));
    if (json.contains("end_of_text")) description.end_of_text = JsonInteger<TokenId>(json.at("end_of_text"));
    for (const Json& entry : json.at("train")) description.train.push_back(EntryFromJson(entry));
    description.validation = EntryFromJson(json.at("validation"));
    description.fingerprint = json.at("fingerprint").get<std::string>();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset description ", path, ": ", error.what(),
                     "; run 'atoll-data tokenize' or 'atoll-data adopt' again"));
  }
  if (description.train.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("dataset description ", path, ": 'train' lists no file"));
  }
  if (Fingerprint(description) != description.fingerprint) {
    return absl::InvalidArgumentError(absl::StrCat("dataset description ", path,
                                                   ": its fingerprint does not match its contents; run "
                                                   "'atoll-data tokenize' or 'atoll-data adopt' again"));
  }
  return description;
}

}  // namespace atl
