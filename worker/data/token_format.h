#ifndef ATOLL_WORKER_DATA_TOKEN_FORMAT_H_
#define ATOLL_WORKER_DATA_TOKEN_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace atl {

/// llm.c's token file (github.com/karpathy/llm.c, dev/data/data_common.py; modded-nanogpt writes the same):
/// 256 little-endian int32 values (magic, version, number of tokens, zeros), then that many little-endian
/// uint16 tokens.
inline constexpr int32_t kTokenMagic = 20240520;
inline constexpr int32_t kTokenVersion = 1;
inline constexpr size_t kTokenHeaderWords = 256;
inline constexpr size_t kTokenHeaderBytes = kTokenHeaderWords * sizeof(int32_t);
static_assert(kTokenHeaderBytes == 1024);
/// The same with uint32 tokens, which llm.c writes for Llama-3. Atoll names it and does not read it.
inline constexpr int32_t kWideTokenMagic = 20240801;
inline constexpr int32_t kWideTokenVersion = 7;
/// A file holds no more than its int32 count can say.
inline constexpr uint64_t kMaxTokensPerFile = 0x7fffffff;

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_FORMAT_H_
