#include "core/model_presets.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/model_shape.h"

namespace atl {
namespace {

// The numbers of parameters that Hugging Face's models have (model.num_parameters()).
TEST(ModelPresetsTest, HaveThePublishedNumbersOfParameters) {
  const std::map<std::string, uint64_t, std::less<>> published = {
      {"gpt2", 124439808},         {"gpt2-medium", 354823168},  {"smollm2-135m", 134515008},
      {"smollm2-360m", 361821120}, {"qwen2.5-0.5b", 494032768}, {"qwen3-0.6b", 596049920},
      {"llama-3.2-1b", 1235814400}};
  ASSERT_EQ(ModelPresets().size(), published.size());
  for (const ModelPreset& preset : ModelPresets()) {
    const auto manifest = ShapeOf(preset.model)->MakeManifest();
    EXPECT_EQ(manifest->elements(), published.at(std::string(preset.name))) << preset.name;
    EXPECT_TRUE(ValidateManifest(*manifest).ok()) << preset.name;
    EXPECT_EQ(FindModelPreset(preset.name), &preset);
  }
  EXPECT_EQ(FindModelPreset("gpt"), nullptr);
}

}  // namespace
}  // namespace atl
