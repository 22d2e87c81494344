#ifndef ATOLL_COMMON_STATUS_H_
#define ATOLL_COMMON_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Propagation of absl::Status. A message says what happened, to what, and what to do.

#define ATOLL_STATUS_CONCAT_INNER_(a, b) a##b
#define ATOLL_STATUS_CONCAT_(a, b) ATOLL_STATUS_CONCAT_INNER_(a, b)

#define ATOLL_RETURN_IF_ERROR(expr)                \
  do {                                             \
    absl::Status atoll_status_ = (expr);           \
    if (!atoll_status_.ok()) return atoll_status_; \
  } while (false)

#define ATOLL_ASSIGN_OR_RETURN(lhs, expr) \
  ATOLL_ASSIGN_OR_RETURN_IMPL_(ATOLL_STATUS_CONCAT_(atoll_statusor_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define ATOLL_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                                 \
  if (!var.ok()) return var.status();                \
  lhs = std::move(var).value()
// NOLINTEND(bugprone-macro-parentheses)

#endif  // ATOLL_COMMON_STATUS_H_
