#ifndef ATOLL_TESTS_WORKER_DATA_TEMPORARY_FOLDER_H_
#define ATOLL_TESTS_WORKER_DATA_TEMPORARY_FOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_width.h"

namespace atl::testing {

/// An empty folder of the running test's own.
std::string TemporaryFolder();

void WriteBytes(const std::string& path, std::string_view bytes);

/// Bytes of a token file with this header and these tokens.
std::string TokenBytes(int32_t magic, int32_t version, int32_t count, const std::vector<TokenId>& tokens);
/// The same, well formed.
std::string TokenBytes(const std::vector<TokenId>& tokens);

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_DATA_TEMPORARY_FOLDER_H_
