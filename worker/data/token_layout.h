#ifndef ATOLL_WORKER_DATA_TOKEN_LAYOUT_H_
#define ATOLL_WORKER_DATA_TOKEN_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/token_width.h"

namespace atl {

/// Where the tokens of a file lie: `count` of them, little-endian, from byte `offset` to the end of the file.
struct TokenLayout {
  std::string_view format;  // "llm.c", "Megatron" or "datatrove"
  uint64_t offset = 0;
  uint64_t count = 0;
  TokenWidth width = TokenWidth::kTwoBytes;
};

/// The layout of a file with these bytes, by content: Megatron if X.idx beside X.bin begins as Megatron's
/// indexes do, datatrove if FILE.metadata or FILE.index is beside it, else llm.c (also modded-nanogpt's).
/// InvalidArgument naming the file for none of them, for parts that contradict each other, and for a type of
/// tokens that Atoll does not read.
absl::StatusOr<TokenLayout> FindTokenLayout(const std::string& path, std::span<const std::byte> bytes);

/// Whether a file of this name may hold tokens: *.bin or *.ds.
bool IsTokenFileName(std::string_view name);

// The formats. Errors are InvalidArgument, with a text that continues "token file FILE: ".

/// core/token_format.h.
absl::StatusOr<TokenLayout> LlmcLayout(std::span<const std::byte> bytes);

inline constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
/// `index` is the .idx file, of which at least the magic is right. The tokens of the .bin file must lie in
/// the order of the sequences, without gaps, as Megatron writes them.
absl::StatusOr<TokenLayout> MegatronLayout(std::span<const std::byte> index, uint64_t bin_bytes);

/// `metadata` is the text of FILE.metadata ("NAME|SIZE\nTOKENS\n..."), `end` the last number in FILE.index
/// (the end of the last document, in tokens). At least one of them is there.
absl::StatusOr<TokenLayout> DatatroveLayout(const std::optional<std::string>& metadata,
                                            std::optional<uint64_t> end, uint64_t ds_bytes);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_LAYOUT_H_
