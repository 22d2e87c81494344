// The tokenizer as a child process, for tests and benchmarks in Python.
//
// Usage: atoll-tokenizer-probe FILE [PATTERN]. Reads requests from the standard input: one byte for what to
// do, four bytes of length (little-endian), the text. Writes four bytes of length and the answer. An empty
// input ends it.
//   e  tokens of the text, invalid UTF-8 replaced        k  the same, invalid bytes kept
//   s  the same as e, the text given in parts            d  the text of tokens
//   t  nanoseconds (8 bytes) and number of tokens (4) of encoding the text with a fresh encoder
//   T  the same with one thread for each half of the text
//   i  name, vocabulary, end of text
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/load.h"

namespace atl {
namespace {

std::string AsBytes(const std::vector<TokenId>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(TokenId)};
}

/// Parts of growing size, so that cuts fall everywhere.
std::vector<TokenId> EncodeInParts(BpeEncoder& encoder, std::string_view text) {
  std::vector<TokenId> tokens;
  std::string waiting;
  for (size_t part = 1; !text.empty(); part = part * 3 / 2 + 1) {
    const std::string_view next = text.substr(0, part);
    text.remove_prefix(next.size());
    waiting += next;
    waiting.erase(0, encoder.EncodePrefix(waiting, tokens));
  }
  encoder.Encode(waiting, tokens);
  return tokens;
}

/// The last line end before the middle.
size_t Middle(std::string_view text) {
  const size_t line = text.rfind('\n', text.size() / 2);
  return line == std::string_view::npos ? text.size() / 2 : line + 1;
}

std::string Timed(const BpeTokenizer& tokenizer, std::string_view text, bool two_threads) {
  uint32_t counts[2] = {0, 0};
  const auto encode = [&](std::string_view part, uint32_t& count) {
    BpeEncoder encoder(tokenizer);
    std::vector<TokenId> tokens;
    encoder.Encode(part, tokens);
    count = static_cast<uint32_t>(tokens.size());
  };
  const auto begin = std::chrono::steady_clock::now();
  if (two_threads) {
    const size_t middle = Middle(text);
    std::thread first(encode, text.substr(0, middle), std::ref(counts[0]));
    encode(text.substr(middle), counts[1]);
    first.join();
  } else {
    encode(text, counts[0]);
  }
  const int64_t took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  const uint32_t all = counts[0] + counts[1];
  std::string answer(12, '\0');
  std::memcpy(answer.data(), &took, 8);
  std::memcpy(answer.data() + 8, &all, 4);
  return answer;
}

class Probe {
 public:
  explicit Probe(const BpeTokenizer& tokenizer)
      : tokenizer_(tokenizer), replace_(tokenizer), keep_(tokenizer, InvalidUtf8::kKeep) {}

  std::string Answer(char what, const std::string& text) {
    std::vector<TokenId> tokens;
    switch (what) {
      case 'e':
        replace_.Encode(text, tokens);
        return AsBytes(tokens);
      case 'k':
        keep_.Encode(text, tokens);
        return AsBytes(tokens);
      case 's':
        return AsBytes(EncodeInParts(replace_, text));
      case 'd':
        tokens.resize(text.size() / sizeof(TokenId));
        std::memcpy(tokens.data(), text.data(), tokens.size() * sizeof(TokenId));
        return tokenizer_.Decode(tokens);
      case 't':
      case 'T':
        return Timed(tokenizer_, text, what == 'T');
      default:
        return absl::StrFormat("%s %d %d %d", tokenizer_.name(), tokenizer_.vocabulary(),
                               tokenizer_.end_of_text() ? static_cast<int>(*tokenizer_.end_of_text()) : -1,
                               tokenizer_.lossless());
    }
  }

 private:
  const BpeTokenizer& tokenizer_;
  BpeEncoder replace_;
  BpeEncoder keep_;
};

int Main(int argc, char** argv) {
  const auto tokenizer = argc > 1 ? LoadTokenizer(argv[1], argc > 2 ? argv[2] : "")
                                  : absl::InvalidArgumentError("usage: atoll-tokenizer-probe FILE [PATTERN]");
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", std::string(tokenizer.status().message()).c_str());
    return 1;
  }
  Probe probe(**tokenizer);
  char what = 0;
  uint32_t size = 0;
  while (std::fread(&what, 1, 1, stdin) == 1 && std::fread(&size, 4, 1, stdin) == 1) {
    std::string text(size, '\0');
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    const std::string answer = probe.Answer(what, text);
    size = static_cast<uint32_t>(answer.size());
    std::fwrite(&size, 4, 1, stdout);
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
