#ifndef ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_
#define ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_

#include <cstdint>
#include <set>

namespace atl {

/// Which numbers a launcher that is free to choose keeps running when `target` are wanted in all. More than
/// now: the lowest numbers that are neither wanted nor drained. Fewer: wanted ones that are no members of the
/// run (`strangers`) go first, then the highest numbers. Pure.
std::set<uint32_t> ChooseNumbers(std::set<uint32_t> wanted, const std::set<uint32_t>& drained,
                                 const std::set<uint32_t>& strangers, uint32_t target);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_
