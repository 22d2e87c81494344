#ifndef ATOLL_CLIENT_SYNC_STREAM_STATE_H_
#define ATOLL_CLIENT_SYNC_STREAM_STATE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/sync/data_cursor.h"
#include "client/sync/divergence_guard.h"
#include "client/sync/evaluation.h"
#include "client/sync/streamed_fragment.h"
#include "core/fragment_schedule.h"

namespace atl {

/// What the parts of the overlapped loop share: the loop takes the steps, FragmentPusher sends, AnswerAdopter
/// uses what comes back. The training thread's.
struct StreamState {
  StreamState(const RunOptions& of, uint64_t config, const DataCursor& at, const DivergenceGuard& counts)
      : run(of), config_version(config), data(at), guard(counts) {}

  const RunOptions run;
  const uint64_t config_version;
  std::vector<std::unique_ptr<StreamedFragment>> fragments;
  std::unique_ptr<FragmentSchedule> schedule;
  DataCursor data;
  DivergenceGuard guard;

  // Where the learning rate's schedule stands: tokens committed at fragment 0's base, and the inner step up
  // to which this worker's are part of them.
  uint64_t committed_tokens = 0;
  uint64_t committed_at = 0;
  uint64_t first_pushed_at = 0;  // fragment 0, last
  uint64_t pushed_position = 0;  // in the data, at the last push of fragment 0

  Duration computed{};  // in inner steps
  MonoTime round_began{};
  std::optional<EvaluationOrder> to_evaluate;
  bool evaluate_last = false;  // to_evaluate is fragment 0's last one
  bool reconfigured = false;   // a plan names a newer configuration
  bool leaving = false;        // drains in its own time
  bool flushing = false;       // no answer is waited for any more
  uint32_t generation = 0;     // how often the windows were dropped

  StreamedFragment& first() const { return *fragments.front(); }
  bool AllFinished() const {
    return std::ranges::all_of(fragments, [](const auto& fragment) { return fragment->finished; });
  }
  bool AllLeftBehind() const {
    return std::ranges::all_of(fragments, [](const auto& fragment) { return fragment->left_behind(); });
  }
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_STREAM_STATE_H_
