#ifndef ATOLL_TESTS_WORKER_DATA_INPUT_COMPRESSED_H_
#define ATOLL_TESTS_WORKER_DATA_INPUT_COMPRESSED_H_

#include <string>

namespace atl::testing {

/// One member.
std::string Gzip(const std::string& text);

/// One frame; `window_log` as `zstd --long=N`, 0: the default.
std::string Zstd(const std::string& text, int window_log = 0);

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_DATA_INPUT_COMPRESSED_H_
