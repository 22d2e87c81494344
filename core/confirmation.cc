#include "core/confirmation.h"

#include "absl/strings/str_format.h"

namespace atoll {

std::string ConfirmationText(const ConfirmationAuthor& author, const Confirmation& confirmation) {
  return absl::StrFormat("atoll-confirmation/1\n%s\n%d\n%s\n%d\n%d\n%d\n%d\n", author.run_id,
                         author.epoch.value(), author.worker, confirmation.fragment.value(),
                         confirmation.version.value(), confirmation.published.low,
                         confirmation.published.high);
}

}  // namespace atoll
