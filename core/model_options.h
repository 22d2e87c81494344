#ifndef ATOLL_CORE_MODEL_OPTIONS_H_
#define ATOLL_CORE_MODEL_OPTIONS_H_

#include <cstdint>
#include <variant>

#include "core/external_options.h"
#include "core/gpt_options.h"
#include "core/llama_options.h"

namespace atl {

/// `model` of a configuration: a family and its options. Only code of one family asks for that family's
/// options; everything else asks ModelShape (core/model_shape.h).
///
/// A new family needs: its options in Family, a ModelShape in ShapeOf, its section in protos/config, and its
/// LibTorch model in worker/models. Every family has `context` and `vocabulary`, in tokens; 0: not known.
class ModelOptions {
 public:
  using Family = std::variant<GptOptions, LlamaOptions, ExternalOptions>;

  /// Of no size, until a configuration says otherwise.
  ModelOptions() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): the options of a family are a model
  ModelOptions(const GptOptions& gpt) : family_(gpt) {}
  explicit ModelOptions(const LlamaOptions& llama) : family_(llama) {}
  explicit ModelOptions(const ExternalOptions& external) : family_(external) {}
  ModelOptions& operator=(const GptOptions& gpt) {
    family_ = gpt;
    return *this;
  }

  const Family& family() const { return family_; }
  /// Requires that the model is of this family.
  GptOptions& gpt() { return std::get<GptOptions>(family_); }
  const GptOptions& gpt() const { return std::get<GptOptions>(family_); }

  /// Null unless the model is of this family.
  LlamaOptions* llama() { return std::get_if<LlamaOptions>(&family_); }
  const LlamaOptions* llama() const { return std::get_if<LlamaOptions>(&family_); }

  /// Null unless only the workers know the model.
  ExternalOptions* external() { return std::get_if<ExternalOptions>(&family_); }
  const ExternalOptions* external() const { return std::get_if<ExternalOptions>(&family_); }
  /// Whether the number of parameters is known before a worker brings the model.
  bool size_known() const { return external() == nullptr || external()->parameters > 0; }

  /// Tokens that the model sees at once.
  uint32_t context() const {
    return std::visit([](const auto& of) { return of.context; }, family_);
  }
  /// Number of tokens that it knows.
  uint32_t vocabulary() const {
    return std::visit([](const auto& of) { return of.vocabulary; }, family_);
  }

 private:
  Family family_;
};

}  // namespace atl

#endif  // ATOLL_CORE_MODEL_OPTIONS_H_
