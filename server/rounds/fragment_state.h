#ifndef ATOLL_SERVER_ROUNDS_FRAGMENT_STATE_H_
#define ATOLL_SERVER_ROUNDS_FRAGMENT_STATE_H_

#include <memory>
#include <vector>

#include "common/ids.h"
#include "core/fragment_plan.h"
#include "server/rounds/tensor_buffer.h"
#include "storage/run_store.h"

namespace atl {

/// The tensors of one fragment at one version. theta is shared: with float32 pulls it is the published
/// payload itself, read by all streams of the snapshot; so it is never written again. The outer optimizer's
/// state belongs to the coordinator alone and is updated in place, which is why the version before must be
/// stored before the next one is computed. Memory: 4 bytes per parameter for theta, 4 for each state vector,
/// and 4 for the next theta while a round is merged; with delta pulls as much again for what is published as
/// for theta.
struct FragmentState {
  Epoch epoch;
  FragmentLayout layout;
  Version version;
  uint64_t outer_steps = 0;  // that theta and state have seen (RoundRecord::outer_steps)
  std::shared_ptr<const TensorBuffer> theta;
  std::vector<TensorBuffer> state;
  /// What workers hold of this version, with delta pulls; null: theta or an encoding of it. On disk it is the
  /// last state vector.
  std::shared_ptr<const TensorBuffer> published = nullptr;

  FragmentTensorsView view() const {
    FragmentTensorsView tensors{.parameters = theta->values(), .state = {}};
    for (const TensorBuffer& vector : state) tensors.state.push_back(vector.values());
    if (published != nullptr) tensors.state.push_back(published->values());
    return tensors;
  }
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_FRAGMENT_STATE_H_
