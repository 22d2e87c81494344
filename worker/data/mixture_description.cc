#include "worker/data/mixture_description.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "common/json_integer.h"
#include "core/mixture_order.h"

namespace atl {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMixAgain[] = "; make the mixture again with 'atoll-data mix'";

absl::Status WrongMixture(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("mixture ", path, ": ", what, kMixAgain));
}

Json PartToJson(const MixturePart& part) {
  return {{"folder", part.folder},
          {"weight", part.weight},
          {"train_tokens", part.train_tokens},
          {"held_out_tokens", part.held_out_tokens},
          {"fingerprint", part.fingerprint}};
}

MixturePart PartFromJson(const Json& json) {
  return {.folder = json.at("folder").get<std::string>(),
          .weight = JsonInteger<uint32_t>(json.at("weight")),
          .train_tokens = JsonInteger<uint64_t>(json.at("train_tokens")),
          .held_out_tokens = JsonInteger<uint64_t>(json.at("held_out_tokens")),
          .fingerprint = json.at("fingerprint").get<std::string>()};
}

absl::Status CheckMixture(const std::string& path, const MixtureDescription& mixture) {
  uint64_t sum = 0;
  for (const MixturePart& part : mixture.parts) {
    if (part.weight == 0) return WrongMixture(path, absl::StrCat("the weight of ", part.folder, " is 0"));
    sum += part.weight;
  }
  if (mixture.parts.size() < 2) return WrongMixture(path, "it has fewer than two datasets");
  if (sum > kMaxMixtureWeights)
    return WrongMixture(path, absl::StrCat("its weights have the sum ", sum, ", above ", kMaxMixtureWeights));
  if (MixtureFingerprint(mixture) != mixture.fingerprint)
    return WrongMixture(path, "its fingerprint does not match its contents");
  return absl::OkStatus();
}

}  // namespace

std::string MixtureFingerprint(const MixtureDescription& mixture) {
  std::string text = absl::StrCat("mixture ", mixture.tokenizer, " ", mixture.vocabulary, "\n");
  for (const MixturePart& part : mixture.parts)
    absl::StrAppend(&text, part.weight, " ", part.fingerprint, "\n");
  return Sha256Hex(text);
}

std::string MixtureToJson(const MixtureDescription& mixture) {
  Json json;
  json["tokenizer"] = mixture.tokenizer;
  json["vocabulary"] = mixture.vocabulary;
  if (mixture.end_of_text) json["end_of_text"] = *mixture.end_of_text;
  json["mixture"] = Json::array();
  for (const MixturePart& part : mixture.parts) json["mixture"].push_back(PartToJson(part));
  json["fingerprint"] = mixture.fingerprint;
  return json.dump(2) + "\n";
}

absl::StatusOr<std::optional<MixtureDescription>> MixtureFromJson(const std::string& path,
                                                                  const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("mixture")) return std::nullopt;
  MixtureDescription mixture;
  try {
    mixture.tokenizer = json.at("tokenizer").get<std::string>();
    mixture.vocabulary = JsonInteger<uint32_t>(json.at("vocabulary"));
    if (json.contains("end_of_text")) mixture.end_of_text = JsonInteger<TokenId>(json.at("end_of_text"));
    for (const Json& part : json.at("mixture")) mixture.parts.push_back(PartFromJson(part));
    mixture.fingerprint = json.at("fingerprint").get<std::string>();
  } catch (const std::exception& error) {
    return WrongMixture(path, error.what());
  }
  const absl::Status checked = CheckMixture(path, mixture);
  if (!checked.ok()) return checked;
  return mixture;
}

}  // namespace atl
