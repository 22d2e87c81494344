#include "worker/data/input/binary_kind.h"

#include <cstddef>

namespace atl {
namespace {

using std::string_view_literals::operator""sv;

struct Mark {
  size_t offset;
  std::string_view bytes;
  BinaryKind kind;
};

constexpr std::string_view kUnpack = "unpack it, and name the files in it";
constexpr std::string_view kExtract = "extract its text with another program";
constexpr std::string_view kRecode = "convert it to UTF-8, for example with iconv";

constexpr Mark kMarks[] = {
    {0, "PK\x03\x04"sv, {"a zip archive", kUnpack}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0, "BZh"sv, {"bzip2 data", "decompress it, for example with `bzcat FILE | atoll-data tokenize ... -`"}},
    {0,
     "\xfd"
     "7zXZ"sv,
     {"xz data", "decompress it, for example with `xzcat FILE | atoll-data tokenize ... -`"}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    {0, "PAR1"sv, {"a Parquet file", "convert it to JSON lines, for example with Python's pandas"}},
    {0, "ARROW1"sv, {"an Arrow file", "convert it to JSON lines, for example with Python's pyarrow"}},
    {0, "%PDF-"sv, {"a PDF document", kExtract}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program", "leave it out"}},
    {0, "\x89PNG"sv, {"an image", "leave it out"}},
    {0, "\xff\xfe"sv, {"UTF-16 text", kRecode}},
    {0, "\xfe\xff"sv, {"UTF-16 text", kRecode}},
    {0, "\x88\xd8\x34\x01"sv, {"a token file of llm.c", "adopt its folder with `atoll-data adopt`"}},
    {0, "\xa1\xd9\x34\x01"sv, {"a token file of llm.c", "adopt its folder with `atoll-data adopt`"}},
    {0, "MMIDIDX"sv, {"an index of Megatron", "adopt its folder with `atoll-data adopt`"}},
};

}  // namespace

const BinaryKind* FindBinaryKind(std::string_view first_bytes) {
  for (const Mark& mark : kMarks) {
    if (first_bytes.size() >= mark.offset && first_bytes.substr(mark.offset).starts_with(mark.bytes)) {
      return &mark.kind;
    }
  }
  return nullptr;
}

}  // namespace atl
