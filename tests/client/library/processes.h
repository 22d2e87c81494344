#ifndef ATOLL_TESTS_CLIENT_LIBRARY_PROCESSES_H_
#define ATOLL_TESTS_CLIENT_LIBRARY_PROCESSES_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace atl {

/// The processes that `parent` has started and that still run.
std::vector<pid_t> ChildrenOf(pid_t parent);
/// Of the program.
std::string NameOf(pid_t process);
bool Runs(pid_t process);

/// Waits until it is so. False: not within a minute.
bool Await(const std::function<bool()>& so);

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_LIBRARY_PROCESSES_H_
