#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/data/token_layout.h"

// The index of Megatron-LM (megatron/core/datasets/indexed_dataset.py), without gaps: magic, u64 version 1,
// u8 type, u64 sequences, u64 document indices, int32 length of each sequence in tokens, int64 byte offset of
// each in the .bin file, int64 first sequence of each document and, at the end, the number of sequences. For
// images one byte for each sequence may follow.

namespace atl {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
// By their number in the file.
constexpr std::array<const char*, 9> kTypes = {"",      "uint8",   "int8",    "int16", "int32",
                                               "int64", "float64", "float32", "uint16"};
constexpr uint8_t kInt32 = 4;
constexpr uint8_t kUint16 = 8;

template <typename Number>
Number At(std::span<const std::byte> bytes, uint64_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

absl::StatusOr<TokenWidth> WidthOf(uint8_t type) {
  if (type == kUint16) return TokenWidth::kTwoBytes;
  if (type == kInt32) return TokenWidth::kFourBytes;
  return absl::InvalidArgumentError(
      absl::StrFormat("its .idx file says that the tokens are of type %s (%d), and Atoll reads uint16 and "
                      "int32; write it again "
                      "with one of these",
                      type < kTypes.size() && type > 0 ? kTypes[type] : "unknown", type));
}

}  // namespace

absl::StatusOr<TokenLayout> MegatronLayout(std::span<const std::byte> index, uint64_t bin_bytes) {
  if (index.size() < kHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("its .idx file has only %d bytes; copy it again", index.size()));
  }
  const auto version = At<uint64_t>(index, 9);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "its .idx file has version %d, and Atoll reads version %d; write it again with Megatron-LM", version,
        kVersion));
  }
  ATOLL_ASSIGN_OR_RETURN(const TokenWidth width, WidthOf(At<uint8_t>(index, 17)));
  const auto sequences = At<uint64_t>(index, 18), documents = At<uint64_t>(index, 26);
  const uint64_t room = index.size() - kHeaderBytes;
  if (sequences > room / 12 || documents > (room - 12 * sequences) / 8) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "its .idx file is truncated: %d sequences and %d documents do not fit in %d bytes; copy it again",
        sequences, documents, index.size()));
  }
  const uint64_t each = BytesPerToken(width);
  uint64_t end = 0;
  for (uint64_t i = 0; i < sequences; ++i) {
    const auto length = At<int32_t>(index, kHeaderBytes + 4 * i);
    const auto offset = At<int64_t>(index, kHeaderBytes + 4 * sequences + 8 * i);
    if (length < 0 || offset < 0 || static_cast<uint64_t>(offset) != end) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "its .idx file puts sequence %d (of %d tokens) at byte %d, and the one before ends at "
          "byte %d; write it again with Megatron-LM",
          i, length, offset, end));
    }
    end += static_cast<uint64_t>(length) * each;
  }
  if (end == bin_bytes) {
    return TokenLayout{.format = "Megatron", .offset = 0, .count = end / each, .width = width};
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("its .idx file lists %d tokens (%d bytes), but the file has %d bytes: it is %s, or of "
                      "another .idx file; "
                      "copy both again",
                      end / each, end, bin_bytes, bin_bytes < end ? "truncated" : "too long"));
}

}  // namespace atl
