#ifndef ATOLL_TESTS_STORAGE_WEIGHTS_SAMPLE_MODEL_H_
#define ATOLL_TESTS_STORAGE_WEIGHTS_SAMPLE_MODEL_H_

#include <cmath>
#include <string>
#include <vector>

#include "core/gpt_options.h"
#include "core/hf/gpt2_layout.h"
#include "storage/weights/hf_folder.h"

namespace atl {

/// A GPT-2 with values that no 16-bit type holds exactly.
struct SampleModel {
  explicit SampleModel(const GptOptions& options = Options(), float scale = 1) : layout(Gpt2Layout(options)) {
    for (const HfTensor& tensor : layout.tensors) {
      size_t count = 1;
      for (const int64_t dimension : tensor.shape) count *= static_cast<size_t>(dimension);
      std::vector<float>& filled = values.emplace_back(count);
      for (size_t i = 0; i < count; ++i) {
        filled[i] = scale * std::sin(static_cast<float>(i) + static_cast<float>(values.size()));
      }
    }
  }

  static GptOptions Options() {
    GptOptions options;
    options.layers = 2;
    options.heads = 2;
    options.width = 8;
    options.context = 4;
    options.vocabulary = 16;
    return options;
  }

  HfFolderContents Contents() const {
    HfFolderContents contents;
    contents.layout = layout;
    for (const std::vector<float>& tensor : values) contents.tensors.emplace_back(tensor);
    return contents;
  }

  const HfLayout layout;
  std::vector<std::vector<float>> values;  // parallel to layout.tensors
};

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_WEIGHTS_SAMPLE_MODEL_H_
