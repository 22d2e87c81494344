#include "client/sync/replica.h"

#include <memory>

#include "client/sync/host_fragment_encoder.h"

namespace atl {

std::unique_ptr<FragmentEncoder> Replica::MakeEncoder(const EncoderOptions& options) {
  return std::make_unique<HostFragmentEncoder>(options);
}

}  // namespace atl
