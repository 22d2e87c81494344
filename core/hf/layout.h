#ifndef ATOLL_CORE_HF_LAYOUT_H_
#define ATOLL_CORE_HF_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/manifest.h"
#include "core/model_options.h"

// How a family of models lies in the files of Hugging Face's transformers: one table per family, from which
// everything that reads or writes such files works.

namespace atl {

/// A tensor in a file.
struct HfTensor {
  std::string name;  // as transformers writes it
  std::vector<int64_t> shape;
  /// The run's tensor has rows and columns swapped. Of matrices only.
  bool transposed = false;
  friend bool operator==(const HfTensor&, const HfTensor&) = default;
};

/// The output head of a model that shares it with its embedding. Files may have it; it must then be equal to
/// `tensor`. Never written.
struct HfTiedHead {
  std::string name;
  size_t tensor = 0;  // index into HfLayout::tensors
};

/// A value of config.json. std::monostate: null.
using HfValue = std::variant<std::monostate, bool, int64_t, double, std::string>;

/// How a file's value may differ from the run's. kEach: the file has a list, whose values are all equal to
/// it.
enum class HfCompare : uint8_t { kEqual, kAtLeast, kEach };

/// A field of config.json.
struct HfField {
  /// A dot enters an object: "rope_scaling.factor". The first name is written. All are read. A file
  /// whose names have different values is rejected.
  std::vector<std::string> names;
  HfValue value;
  /// The setting that it is compared with, for messages: "model.gpt.width". Empty: written, never compared.
  std::string setting = {};
  /// What transformers assumes for a file without the field; nullopt: such a file is rejected.
  std::optional<HfValue> absent = {};
  /// Other values that mean the same.
  std::vector<HfValue> same = {};
  bool written = true;  // false: compared only
  HfCompare compare = HfCompare::kEqual;
};

/// Appends a field that is written and never compared.
void AddWritten(std::vector<HfField>& fields, const std::string& name, const HfValue& value);

/// The table of one model. A new family adds a function that makes it, and a case in HfLayoutOf.
struct HfLayout {
  std::string model_type;    // of config.json: "gpt2"
  std::string architecture;  // "GPT2LMHeadModel"
  /// Files of the model without its head lack it before every name.
  std::string prefix;
  std::vector<HfTensor> tensors;  // parallel to the tensors of the run's manifest
  /// Tensors that transformers needs and the run's model does not have: zeros. A file may lack them.
  std::vector<HfTensor> zeros;
  std::vector<std::string> ignored;  // names of constants that some files hold
  std::optional<HfTiedHead> tied;
  std::vector<HfField> fields;
};

/// The table of the model; nullopt: transformers does not have its family.
std::optional<HfLayout> HfLayoutOf(const ModelOptions& model);

/// A table with the manifest's own names and nothing else, for files of other origin.
HfLayout PlainLayout(const Manifest& manifest);

}  // namespace atl

#endif  // ATOLL_CORE_HF_LAYOUT_H_
