#include "worker/sync/replica.h"

#include <memory>

#include "worker/sync/host_fragment_encoder.h"

namespace atl {

std::unique_ptr<FragmentEncoder> Replica::MakeEncoder(const EncoderOptions& options) {
  return std::make_unique<HostFragmentEncoder>(options);
}

}  // namespace atl
