#include "core/hf/model_of_config.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "core/hf/config_bounds.h"
#include "core/hf/config_file.h"
#include "core/hf/layout.h"
#include "core/model_shape.h"

namespace atl {
namespace {

using Json = nlohmann::json;

// Of layers, heads and widths; beyond it, sizes of tensors would not fit their types.
constexpr uint32_t kMaxLayers = 1 << 12;
constexpr uint32_t kMaxCount = 1 << 20;

using Names = std::initializer_list<const char*>;

/// Reads fields one after another and keeps the first problem.
class Fields {
 public:
  explicit Fields(const Json& config) : config_(config) {}

  /// 1 to `most`. nullopt as `absent`: the field has to be there.
  uint32_t Count(Names names, std::optional<uint32_t> absent, uint32_t most = kMaxCount) {
    const Json* const value = Find(names);
    if (value == nullptr && absent) return *absent;
    if (value != nullptr && value->is_number_unsigned()) {
      const auto number = value->get<uint64_t>();
      if (number >= 1 && number <= most) return static_cast<uint32_t>(number);
    }
    Wrong(names, value, absl::StrFormat("a whole number from 1 to %d", most));
    return 1;
  }

  double Number(Names names, std::optional<double> absent) {
    const Json* const value = Find(names);
    if (value == nullptr && absent) return *absent;
    if (value != nullptr && value->is_number() && value->get<double>() > 0) return value->get<double>();
    Wrong(names, value, "a number above 0");
    return 1;
  }

  bool Truth(Names names, bool absent) {
    const Json* const value = Find(names);
    if (value == nullptr) return absent;
    if (value->is_boolean()) return value->get<bool>();
    Wrong(names, value, "true or false");
    return absent;
  }

  /// Whether the field is there, if only as null.
  bool Has(const char* name) const { return JsonAt(config_, name) != nullptr; }

  /// Whether the field is there and holds this text.
  bool Says(Names names, const char* text) const {
    const Json* const value = Find(names);
    return value != nullptr && *value == text;
  }

  /// Empty: none.
  const std::string& problem() const { return problem_; }

 private:
  /// Null for a field that is null, too: transformers takes its default then.
  const Json* Find(Names names) const {
    for (const char* const name : names) {
      const Json* const value = JsonAt(config_, name);
      if (value != nullptr && !value->is_null()) return value;
    }
    return nullptr;
  }

  void Wrong(Names names, const Json* value, const std::string& expected) {
    if (!problem_.empty()) return;
    const std::string shown = value == nullptr
                                  ? "missing"
                                  : ForeignName(value->dump(-1, ' ', false, Json::error_handler_t::replace));
    problem_ = absl::StrFormat("%s is %s; expected %s", *names.begin(), shown, expected);
  }

  const Json& config_;
  std::string problem_;
};

/// The defaults are those of GPT2Config.
GptOptions Gpt2Of(Fields& fields) {
  return {.layers = fields.Count({"n_layer", "num_hidden_layers"}, 12, kMaxLayers),
          .heads = fields.Count({"n_head", "num_attention_heads"}, 12),
          .width = fields.Count({"n_embd", "hidden_size"}, 768),
          .context = fields.Count({"n_positions", "max_position_embeddings"}, 1024),
          .vocabulary = fields.Count({"vocab_size"}, 50257),
          .tied_embeddings = fields.Truth({"tie_word_embeddings"}, true)};
}

RopeScaling ScalingOf(Fields& fields) {
  const Names type = {"rope_scaling.rope_type", "rope_scaling.type", "rope_parameters.rope_type",
                      "rope_parameters.type"};
  if (!fields.Says(type, "llama3")) {
    return {};  // CheckHfConfig names any other type
  }
  const Names original = {"rope_scaling.original_max_position_embeddings",
                          "rope_parameters.original_max_position_embeddings"};
  return {.factor = fields.Number({"rope_scaling.factor", "rope_parameters.factor"}, std::nullopt),
          .low_freq_factor = fields.Number(
              {"rope_scaling.low_freq_factor", "rope_parameters.low_freq_factor"}, std::nullopt),
          .high_freq_factor = fields.Number(
              {"rope_scaling.high_freq_factor", "rope_parameters.high_freq_factor"}, std::nullopt),
          .original_context = fields.Count(original, std::nullopt)};
}

/// The defaults are those of LlamaConfig, Qwen2Config and Qwen3Config. 0: follows from the other sizes.
LlamaOptions LlamaOf(Fields& fields, const std::string& type) {
  const uint32_t groups = type == "llama" || fields.Has("num_key_value_heads") ? 0 : 32;
  const uint32_t head_dim = type != "qwen3" || fields.Has("head_dim") ? 0 : 128;
  return {.layers = fields.Count({"num_hidden_layers"}, std::nullopt, kMaxLayers),
          .heads = fields.Count({"num_attention_heads"}, std::nullopt),
          .kv_heads = fields.Count({"num_key_value_heads"}, groups),
          .head_dim = fields.Count({"head_dim"}, head_dim),
          .width = fields.Count({"hidden_size"}, std::nullopt),
          .intermediate = fields.Count({"intermediate_size"}, std::nullopt),
          .context = fields.Count({"max_position_embeddings"}, std::nullopt),
          .vocabulary = fields.Count({"vocab_size"}, std::nullopt),
          .rope_theta =
              fields.Number({"rope_theta", "rope_scaling.rope_theta", "rope_parameters.rope_theta"}, 10000),
          .rope_scaling = ScalingOf(fields),
          .rms_norm_epsilon = fields.Number({"rms_norm_eps"}, 1e-6),
          .tied_embeddings = fields.Truth({"tie_word_embeddings"}, false),
          .qkv_bias = type == "qwen2",
          .qk_norm = type == "qwen3"};
}

absl::Status WrongConfig(std::string_view source, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(source), ": ", what));
}

absl::StatusOr<ModelOptions> ReadModel(const Json& config, std::string_view source) {
  const Json* const found = JsonAt(config, "model_type");
  const std::string type = found != nullptr && found->is_string() ? found->get<std::string>() : "";
  Fields fields(config);
  ModelOptions model;
  if (type == "gpt2") {
    model = ModelOptions(Gpt2Of(fields));
  } else if (type == "llama" || type == "qwen2" || type == "qwen3") {
    model = ModelOptions(LlamaOf(fields, type));
  } else {
    return WrongConfig(source, absl::StrFormat("model_type is '%s'; gpt2, llama, qwen2 and qwen3 are known",
                                               ForeignName(type)));
  }
  if (!fields.problem().empty()) return WrongConfig(source, fields.problem());
  return model;
}

}  // namespace

absl::StatusOr<ModelOptions> ModelOfHfConfig(std::string_view text, std::string_view source) {
  const auto config = ParseBoundedJson(text, kHfConfigBounds);
  if (!config.ok()) return WrongConfig(source, std::string(config.status().message()));
  ATOLL_ASSIGN_OR_RETURN(const ModelOptions model, ReadModel(*config, source));
  const auto shape = ShapeOf(model);
  if (const auto problem = shape->FindProblem()) {
    return WrongConfig(source, absl::StrCat(shape->section(), ".", problem->setting, ": ", problem->text));
  }
  const std::optional<HfLayout> layout = HfLayoutOf(model);
  if (!layout) return WrongConfig(source, "transformers has no such model");
  ATOLL_RETURN_IF_ERROR(CheckHfConfig(text, *layout, source));
  return model;
}

}  // namespace atl
