#ifndef ATOLL_CORE_PROTOCOL_CONFIRMATION_PAGE_H_
#define ATOLL_CORE_PROTOCOL_CONFIRMATION_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "core/confirmation.h"

namespace atl {

/// Which confirmations of one fragment to show, and from where on.
struct ConfirmationQuery {
  /// Confirmations behind this one, in the order of version and worker.
  struct Cursor {
    Version version = {};
    WorkerName worker = {};
  };
  FragmentId fragment = {};
  Version first = {};  // both included
  Version last = {};
  std::optional<Cursor> after = std::nullopt;
  uint32_t limit = 0;  // 0, or above kMaxShownConfirmations: so many
};
inline constexpr uint32_t kMaxShownConfirmations = 512;

/// Confirmations that the coordinator shows, of one fragment.
struct ConfirmationPage {
  std::string run_id = {};
  std::vector<SignedConfirmation> confirmations = {};
  std::optional<ConfirmationQuery::Cursor> next = std::nullopt;  // none: that was all
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_CONFIRMATION_PAGE_H_
