#include "worker/app/load_safetensors.h"

#include <span>
#include <vector>

#include "common/status.h"
#include "core/fragment_plan.h"
#include "core/hf/config_file.h"
#include "core/hf/tensor_match.h"
#include "storage/weights/model_files.h"

namespace atl {

HfLayout LayoutOf(const ModelOptions& model, const Replica& replica) {
  const auto layout = HfLayoutOf(model);
  return layout ? *layout : PlainLayout(replica.manifest());
}

absl::Status LoadSafetensors(const std::string& path, const HfLayout& layout, Replica& replica) {
  ATOLL_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(path));
  if (const auto& config = files.config(); config && !layout.model_type.empty()) {
    ATOLL_RETURN_IF_ERROR(CheckHfConfig(config->text, layout, config->path));
  }
  ATOLL_ASSIGN_OR_RETURN(const TensorMatch match,
                         MatchTensors(layout, files.found(), path, ExtraTensors::kIgnore));
  ATOLL_RETURN_IF_ERROR(CheckValues(layout, match));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> fragments, PlanFragments(replica.manifest(), 1));
  std::vector<float> values(fragments[0].elements);
  for (const TensorSlot& slot : fragments[0].slots) {
    ReadValues(layout, match, slot.tensor, std::span(values).subspan(slot.offset, slot.elements));
  }
  return replica.WriteFragment(fragments[0], values);
}

}  // namespace atl
