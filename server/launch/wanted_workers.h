#ifndef ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_
#define ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_

#include <cstdint>
#include <set>

namespace atl {

/// Chooses the numbers that a launcher keeps running for `target` workers. To add workers, takes the lowest
/// numbers that are neither wanted nor drained. To remove workers, drops wanted ones that are not members of
/// the run (`strangers`) first, then the highest numbers. Pure.
std::set<uint32_t> ChooseNumbers(std::set<uint32_t> wanted, const std::set<uint32_t>& drained,
                                 const std::set<uint32_t>& strangers, uint32_t target);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_WANTED_WORKERS_H_
