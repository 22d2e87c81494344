#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"
#include "worker/data/dataset_description.h"
#include "worker/data/input/text_source.h"
#include "worker/data/token_file.h"
#include "worker/data/token_layout.h"
#include "worker/data/tokenizer.h"

namespace atl::fuzz {

// vocabulary:u16, then the file.
void FuzzTokenFile(FuzzInput in) {
  const uint32_t vocabulary = in.Number(2) + 1;
  const MemoryFile file(in.Rest());
  const auto tokens = TokenFile::Open(file.path(), vocabulary);
  if (!tokens.ok()) return;
  const std::vector<TokenId> all = tokens->tokens().Tokens();
  const bool inside = std::ranges::all_of(all, [&](TokenId t) { return t < vocabulary; });
  ATOLL_FUZZ_REQUIRE(inside);
  static_cast<void>(ByteTokenizer().Decode(all));
}

// One byte: which layout. Megatron's: bytes of the .bin file:u32, then the .idx file. datatrove's: whether
// there is an end:u8, the end:u32, bytes of the .ds file:u32, then the metadata.
void FuzzTokenLayout(FuzzInput in) {
  const bool megatron = in.Byte() % 2 == 0;
  std::optional<uint64_t> end;
  if (!megatron && in.Byte() % 2 == 0) end = in.Number(4);
  if (!megatron && !end) in.Number(4);
  const uint64_t bytes = in.Number(4);
  absl::StatusOr<TokenLayout> layout = absl::UnknownError("none");
  if (megatron) {
    layout = MegatronLayout(in.Rest(), bytes);
  } else {
    layout = DatatroveLayout(in.RestText(), end, bytes);
  }
  if (!layout.ok()) return;
  ATOLL_FUZZ_REQUIRE(layout->offset == 0);
  ATOLL_FUZZ_REQUIRE(layout->count * BytesPerToken(layout->width) == bytes);
  ATOLL_FUZZ_REQUIRE(!end || *end == layout->count);
}

// A file of text, plain, gzip or zstd.
void FuzzTextSource(FuzzInput in) {
  const MemoryFile file(in.Rest());
  // A window is memory, which a fuzzer counts.
  auto source = TextSource::Open(file.path(), 24);
  ATOLL_FUZZ_REQUIRE(source.ok());
  std::string piece;
  std::vector<TokenId> tokens;
  // Some ten bytes may be a megabyte of text; a limit keeps the fuzzer fast.
  for (int pieces = 0; pieces < 8; ++pieces) {
    piece.clear();
    if (!source->Read(4096, piece).ok() || piece.empty()) return;
    ATOLL_FUZZ_REQUIRE(piece.size() <= 4096);
    ByteTokenizer().Encode(piece, tokens);
    ATOLL_FUZZ_REQUIRE(tokens.size() == piece.size());
  }
}

void FuzzDatasetDescription(FuzzInput in) {
  const auto description = DescriptionFromJson("meta.json", in.RestText());
  if (!description.ok()) return;
  const auto again = DescriptionFromJson("meta.json", DescriptionToJson(*description));
  ATOLL_FUZZ_REQUIRE(again.ok() && Fingerprint(*again) == Fingerprint(*description));
}

}  // namespace atl::fuzz
