#ifndef ATOLL_SERVER_ALL_EVALUATIONS_H_
#define ATOLL_SERVER_ALL_EVALUATIONS_H_

#include <algorithm>
#include <iterator>
#include <vector>

#include "server/views.h"

namespace atl {

/// Those that led to the head and those that were abandoned, ascending versions.
inline std::vector<EvaluationView> AllEvaluations(const StatusView& status) {
  std::vector<EvaluationView> all;
  std::ranges::merge(status.evaluations, status.abandoned_evaluations, std::back_inserter(all), {},
                     &EvaluationView::version, &EvaluationView::version);
  return all;
}

}  // namespace atl

#endif  // ATOLL_SERVER_ALL_EVALUATIONS_H_
