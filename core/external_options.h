#ifndef ATOLL_CORE_EXTERNAL_OPTIONS_H_
#define ATOLL_CORE_EXTERNAL_OPTIONS_H_

#include <cstdint>
#include <string>

namespace atl {

/// `model.external` of a configuration: a model that only the workers know. Its tensors become known when a
/// worker seeds the run. With a script it is `model.torchscript`, which is the same to the coordinator.
struct ExternalOptions {
  uint32_t context = 1;     // tokens of a sample
  uint64_t parameters = 0;  // expected; 0: any number
  uint32_t vocabulary = 0;  // tokens; 0: not known, so no dataset is compared with it
  std::string script = {};  // TorchScript file on every worker; empty: the workers have programs of their own
};

}  // namespace atl

#endif  // ATOLL_CORE_EXTERNAL_OPTIONS_H_
