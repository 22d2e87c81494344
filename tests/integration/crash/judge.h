#ifndef ATOLL_TESTS_INTEGRATION_CRASH_JUDGE_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_JUDGE_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "tests/integration/crash/promises.h"
#include "tests/integration/crash/serial_model.h"
#include "tests/integration/crash/victim.h"

namespace atl {

/// What had been promised at one moment.
struct Promised {
  std::set<Promises::Acknowledged> accepted;
  std::map<Promises::Published, ContentHash> published;
  Version head;

  static Promised Now(const Promises& promises) {
    return {.accepted = promises.accepted(), .published = promises.published(), .head = promises.head()};
  }
};

/// Holds what is on a disk against what had been promised: every acknowledged contribution counted once or
/// waits to, the head is not behind what was published, every version is the one of the serial model, which
/// follows. `checkpoints`: version by name, for restores. DataLoss saying what is wrong.
absl::Status JudgeRemains(const Promised& promised, const Recovery& recovery,
                          const std::map<std::string, Version>& checkpoints, SerialModel& model);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_JUDGE_H_
