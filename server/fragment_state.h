#ifndef ATOLL_SERVER_FRAGMENT_STATE_H_
#define ATOLL_SERVER_FRAGMENT_STATE_H_

#include <memory>
#include <vector>

#include "common/ids.h"
#include "core/fragment_plan.h"
#include "server/tensor_buffer.h"
#include "storage/run_store.h"

namespace atoll {

/// The tensors of one fragment at one version. theta is shared: with float32 pulls it is the published
/// payload itself, read by whoever streams the snapshot; so it is never written again. The outer optimizer's
/// state belongs to the coordinator alone and is updated in place, which is why the version before must be
/// stored before the next one is computed. Memory: 4 bytes per parameter for theta, 4 for each state vector,
/// and 4 for the next theta while a round is merged.
struct FragmentState {
  Epoch epoch;
  FragmentLayout layout;
  Version version;
  uint64_t outer_steps = 0;  // that theta and state have seen (RoundRecord::outer_steps)
  std::shared_ptr<const TensorBuffer> theta;
  std::vector<TensorBuffer> state;

  FragmentTensorsView view() const {
    FragmentTensorsView tensors{.parameters = theta->values(), .state = {}};
    for (const TensorBuffer& vector : state) tensors.state.push_back(vector.values());
    return tensors;
  }
};

}  // namespace atoll

#endif  // ATOLL_SERVER_FRAGMENT_STATE_H_
