#ifndef ATOLL_CLIENT_SYNC_ANSWER_ADOPTER_H_
#define ATOLL_CLIENT_SYNC_ANSWER_ADOPTER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/sync/context.h"
#include "client/sync/fragment_exchange.h"
#include "client/sync/replica.h"
#include "client/sync/stream_state.h"

namespace atl {

/// Uses what comes back from the exchanges of the overlapped loop. The training thread's. Memory: 4 bytes per
/// parameter of the largest fragment.
class AnswerAdopter {
 public:
  /// All pointers outlive this object.
  AnswerAdopter(StreamState* state, Replica* replica, const WorkerContext& context)
      : state_(*state), replica_(replica), context_(context) {}

  /// Every answer that is there and may be used by now.
  absl::Status UseAnswers();
  absl::Status Use(StreamedFragment& fragment, const ExchangeAnswer& answer);
  /// Schedule, data and evaluation go by the plan of fragment 0. `counted_to`: the inner step up to which
  /// this worker's tokens are in it.
  absl::Status NoteFirst(uint64_t counted_to);
  /// Back to the bases: a number was not finite. Nothing more once the worker has to give up.
  absl::Status DropWindows(const absl::Status& why);

 private:
  absl::Status Adopt(StreamedFragment& fragment, const ExchangeAnswer& answer);
  /// The local parameters of the fragment become what its exchange pulled; of the inner steps that were taken
  /// meanwhile stays what run.sync says, or nothing.
  absl::Status WriteAnswer(StreamedFragment& fragment, bool as_published);
  void TakeBase(StreamedFragment& fragment, const PulledVersion& pulled);
  uint64_t StepsIn(Duration time) const;

  StreamState& state_;
  Replica* const replica_;
  const WorkerContext context_;
  std::vector<float> local_;  // of the fragment whose answer is being used
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_ANSWER_ADOPTER_H_
