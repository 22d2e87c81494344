#ifndef ATOLL_SERVER_MEMBERS_MEMBER_RECORDS_H_
#define ATOLL_SERVER_MEMBERS_MEMBER_RECORDS_H_

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "storage/run_store.h"

namespace atl {

/// What an operator does to members and must be on disk before it is done.
enum class MemberAction : uint8_t { kEvict, kBan, kUnban, kForget };

/// The records of members as they will be when an action is done. A name is in one of the lists.
struct MemberRecords {
  std::vector<WorkerEntry> stored;
  std::vector<WorkerName> removed;
};

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_MEMBER_RECORDS_H_
