#ifndef ATOLL_CORE_EXTERNAL_OPTIONS_H_
#define ATOLL_CORE_EXTERNAL_OPTIONS_H_

#include <cstdint>

namespace atl {

/// `model.external` of a configuration: a model that only the workers know. Its tensors become known when a
/// worker seeds the run.
struct ExternalOptions {
  uint32_t context = 1;     // tokens of a sample
  uint64_t parameters = 0;  // expected; 0: any number
  /// Nothing is known of it, so no dataset is compared with it.
  static constexpr uint32_t vocabulary = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_EXTERNAL_OPTIONS_H_
