#include "core/hf/config_file.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "core/hf/config_bounds.h"

namespace atl {
namespace {

using Json = nlohmann::json;

Json ToJson(const HfValue& value) {
  return std::visit(
      [](const auto& plain) {
        if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, std::monostate>) {
          return Json(nullptr);
        } else {
          return Json(plain);
        }
      },
      value);
}

std::string Shown(const Json& json) {
  return ForeignName(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool Fits(const Json& value, const HfField& field) {
  const Json wanted = ToJson(field.value);
  if (field.compare == HfCompare::kAtLeast && value.is_number() && value >= wanted) return true;
  return value == wanted ||
         std::ranges::any_of(field.same, [&](const HfValue& same) { return value == ToJson(same); });
}

/// The value and its name, "layer_types[1]"; where no name has a value: null and the first name.
struct Found {
  const Json* value = nullptr;
  std::string name;
};

/// The first name with a value; null is a value where no name has another.
Found FindField(const Json& config, const HfField& field) {
  Found found = {.name = field.names.front()};
  for (const std::string& name : field.names) {
    const Json* const value = JsonAt(config, name);
    if (value == nullptr) continue;
    if (!value->is_null()) return {value, name};
    if (found.value == nullptr) found = {value, name};
  }
  return found;
}

/// How two names of the field contradict each other; empty: they do not. Readers disagree about which counts.
std::string Disagreement(const Json& config, const HfField& field) {
  const Found first = FindField(config, field);
  for (const std::string& name : field.names) {
    const Json* const other = JsonAt(config, name);
    if (other == nullptr || other->is_null() || *other == *first.value) continue;
    return absl::StrFormat("%s is %s and %s is %s, but they are names of one field; remove one", first.name,
                           Shown(*first.value), name, Shown(*other));
  }
  return "";
}

/// Of a field with one value for each layer: the first that does not fit.
Found FindUnfit(const Found& list, const HfField& field) {
  if (!list.value->is_array()) return list;
  for (size_t i = 0; i < list.value->size(); ++i) {
    if (!Fits((*list.value)[i], field)) return {&(*list.value)[i], absl::StrFormat("%s[%d]", list.name, i)};
  }
  return {};
}

/// What is wrong with the field; empty: nothing. Equality of JSON values is that of numbers: 1 equals 1.0.
std::string Contradiction(const Json& config, const HfField& field) {
  std::string disagreement = Disagreement(config, field);
  if (!disagreement.empty()) return disagreement;
  Found place = FindField(config, field);
  if (field.compare == HfCompare::kEach && place.value != nullptr && !place.value->is_null()) {
    place = FindUnfit(place, field);
    if (place.value == nullptr) return "";
  }
  const Json* const found = place.value;
  const std::string& name = field.names.front();
  const std::string wanted =
      absl::StrFormat("the run %s %s (%s)", field.compare == HfCompare::kAtLeast ? "needs at least" : "has",
                      Shown(ToJson(field.value)), field.setting);
  if (found == nullptr && !field.absent) return absl::StrFormat("%s is missing; %s", name, wanted);
  const Json value = found == nullptr ? ToJson(*field.absent) : *found;
  if (Fits(value, field)) return "";
  if (found != nullptr) return absl::StrFormat("%s is %s; %s", place.name, Shown(value), wanted);
  std::vector<std::string> names;
  for (const auto& [other, unused] : config.items()) names.push_back(other);
  return absl::StrFormat("%s is missing, which means %s; %s%s", name, Shown(value), wanted,
                         NearName(name, names));
}

constexpr char kOlderRope[] = "rope_scaling";
constexpr char kNewerRope[] = "rope_parameters";

/// A member of one of the two objects above as transformers completes it; null: there is none.
Json RopeMember(const Json& config, const std::string& object, const std::string& member) {
  const auto at = [&](const std::string& path) {
    const Json* const value = JsonAt(config, path);
    return value == nullptr ? Json() : *value;
  };
  Json value = at(absl::StrCat(object, ".", member));
  if (value.is_null() && member == "rope_theta") value = at(member);
  if (value.is_null() && member == "rope_type") value = at(absl::StrCat(object, ".type"));
  if (value.is_null() && member == "rope_type") value = "default";
  return value;
}

/// What is wrong with an object of rotary positions by itself; empty: nothing.
std::string RopeObjectProblem(const std::string& name, const Json& object) {
  if (!object.is_object()) return absl::StrFormat("%s is %s; expected an object", name, Shown(object));
  for (const auto& [member, value] : object.items()) {
    if (!value.is_object()) continue;
    return absl::StrFormat("%s.%s is an object; the run has the same rotary positions in all layers", name,
                           ForeignName(member));
  }
  return "";
}

/// How the file contradicts itself about rotary positions; empty: it does not. Of two objects, transformers 5
/// reads `rope_scaling` alone, and other readers the other.
std::string RopeContradiction(const Json& config) {
  std::set<std::string> members;
  size_t objects = 0;
  for (const char* const name : {kOlderRope, kNewerRope}) {
    const Json* const object = JsonAt(config, name);
    if (object == nullptr || object->empty()) continue;
    std::string problem = RopeObjectProblem(name, *object);
    if (!problem.empty()) return problem;
    ++objects;
    for (const auto& [member, value] : object->items())
      members.insert(member == "type" ? "rope_type" : member);
  }
  if (objects < 2) return "";
  for (const std::string& member : members) {
    const Json older = RopeMember(config, kOlderRope, member);
    const Json newer = RopeMember(config, kNewerRope, member);
    if (older == newer) continue;
    const auto shown = [](const Json& value) { return value.is_null() ? "missing" : Shown(value); };
    return absl::StrFormat("%s.%s is %s and %s.%s is %s, but readers use one of the two objects; remove one",
                           kOlderRope, ForeignName(member), shown(older), kNewerRope, ForeignName(member),
                           shown(newer));
  }
  return "";
}

absl::Status WrongConfigFile(std::string_view source, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(source), ": ", what));
}

/// Puts the value at a path with dots.
void Put(nlohmann::ordered_json& json, const std::string& path, const HfValue& value) {
  nlohmann::ordered_json* place = &json;
  for (const auto part : absl::StrSplit(path, '.')) place = &(*place)[std::string(part)];
  *place = ToJson(value);
}

/// Null, a number, or a list of several.
nlohmann::ordered_json IdsOf(const std::vector<int64_t>& ids) {
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? nlohmann::ordered_json(ids.front()) : nlohmann::ordered_json(ids);
}

nlohmann::ordered_json IdOf(const std::optional<int64_t>& id) {
  return id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json(nullptr);
}

// No model has as many tokens that end a text; it bounds what an export copies.
constexpr size_t kMaxIds = 256;

/// A number, or a list of them.
std::vector<int64_t> IdsIn(const Json& json, const char* name, uint32_t vocabulary) {
  const Json* const found = JsonAt(json, name);
  if (found == nullptr) return {};
  std::vector<int64_t> ids;
  for (const Json& id : found->is_array() ? *found : Json::array({*found})) {
    if (ids.size() == kMaxIds) break;
    if (id.is_number_unsigned() && id.get<uint64_t>() < vocabulary) ids.push_back(id.get<int64_t>());
  }
  return ids;
}

}  // namespace

absl::Status CheckHfConfig(std::string_view text, const HfLayout& layout, std::string_view source) {
  const auto config = ParseBoundedJson(text, kHfConfigBounds);
  if (!config.ok()) return WrongConfigFile(source, std::string(config.status().message()));
  if (!config->is_object()) return WrongConfigFile(source, "is not a JSON object");
  const Json* const type = JsonAt(*config, "model_type");
  if (type == nullptr || *type != layout.model_type) {
    return WrongConfigFile(source,
                           absl::StrFormat("model_type is %s; the run's model is a '%s'",
                                           type == nullptr ? "missing" : Shown(*type), layout.model_type));
  }
  const std::string rope = RopeContradiction(*config);
  if (!rope.empty()) return WrongConfigFile(source, rope);
  std::vector<std::string> contradictions;
  for (const HfField& field : layout.fields) {
    if (field.setting.empty()) continue;
    std::string contradiction = Contradiction(*config, field);
    if (!contradiction.empty()) contradictions.push_back(std::move(contradiction));
  }
  if (contradictions.empty()) return absl::OkStatus();
  return WrongConfigFile(source, absl::StrJoin(contradictions, ". Also: "));
}

HfTokenIds TokenIdsOf(std::string_view text, uint32_t vocabulary) {
  const auto json = ParseBoundedJson(text, kHfConfigBounds);
  if (!json.ok()) return {};
  HfTokenIds ids = {.ends = IdsIn(*json, "eos_token_id", vocabulary)};
  const std::vector<int64_t> begins = IdsIn(*json, "bos_token_id", vocabulary);
  if (!begins.empty()) ids.begin = begins.front();
  return ids;
}

std::string HfConfigText(const HfLayout& layout, FileDtype dtype, const HfTokenIds& ids) {
  nlohmann::ordered_json json;
  json["architectures"] = {layout.architecture};
  json["model_type"] = layout.model_type;
  for (const HfField& field : layout.fields) {
    if (field.written) Put(json, field.names.front(), field.value);
  }
  json["bos_token_id"] = IdOf(ids.begin);
  json["eos_token_id"] = IdsOf(ids.ends);
  // Readers of before 2026 know this name only, and newer ones still read it.
  json["torch_dtype"] = TorchName(dtype);
  return json.dump(2) + "\n";
}

std::string HfGenerationConfigText(const HfTokenIds& ids) {
  nlohmann::ordered_json json;
  json["_from_model_config"] = true;
  if (ids.begin) json["bos_token_id"] = *ids.begin;
  if (!ids.ends.empty()) json["eos_token_id"] = IdsOf(ids.ends);
  return json.dump(2) + "\n";
}

}  // namespace atl
