#ifndef ATOLL_CORE_PROTOCOL_MEMBER_REF_H_
#define ATOLL_CORE_PROTOCOL_MEMBER_REF_H_

#include <string>

#include "common/ids.h"
#include "core/membership.h"

namespace atl {

/// Who calls, in which life, of which run (WorkerRef on the wire).
struct MemberRef {
  std::string run_id = {};
  Epoch epoch = {};
  WorkerName worker = {};
  Incarnation incarnation = {};

  /// It joined as an observer and may look; its name is anybody's.
  bool observes() const { return incarnation == kObserverIncarnation; }
  friend bool operator==(const MemberRef&, const MemberRef&) = default;
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_MEMBER_REF_H_
