#ifndef ATOLL_CLI_LOSS_TEXT_H_
#define ATOLL_CLI_LOSS_TEXT_H_

#include <string>

#include "absl/strings/str_format.h"

namespace atl {

/// A loss for people, right-aligned in `width` columns. Language models have losses of the size of 1, shown
/// with a fixed number of decimals. An external model may have any: a huge or tiny one has an exponent.
inline std::string LossNumber(double loss, int width = 0, int decimals = 3) {
  const double size = loss < 0 ? -loss : loss;
  const bool usual = loss == 0 || (size >= 5e-4 && size < 99999.5);
  return usual ? absl::StrFormat("%*.*f", width, decimals, loss) : absl::StrFormat("%*.3g", width, loss);
}

}  // namespace atl

#endif  // ATOLL_CLI_LOSS_TEXT_H_
