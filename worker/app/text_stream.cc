#include "worker/app/text_stream.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace atl {
namespace {

/// Bytes of the UTF-8 character that this byte begins; 1 for a byte that begins none.
size_t CharacterBytes(unsigned char first) {
  if (first >= 0xF0 && first < 0xF8) return 4;
  if (first >= 0xE0) return first < 0xF0 ? 3 : 1;
  return first >= 0xC2 ? 2 : 1;
}

/// Bytes at the end that begin a character and do not complete it.
size_t IncompleteCharacter(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    const auto byte = static_cast<unsigned char>(text[text.size() - length]);
    if ((byte & 0xC0) == 0x80) continue;
    return CharacterBytes(byte) > length ? length : 0;
  }
  return 0;
}

/// Length of the longest end of the text that begins `stop`.
size_t BegunStop(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {}

size_t TextStream::Uncertain() const {
  size_t length = IncompleteCharacter(held_);
  for (const std::string& stop : stops_) length = std::max(length, BegunStop(held_, stop));
  return length;
}

std::string TextStream::Add(TokenId token) {
  if (stopped_) return "";
  held_ += tokenizer_.Decode(std::span(&token, 1));
  size_t certain = held_.size() - Uncertain();
  for (const std::string& stop : stops_) {
    const size_t place = held_.find(stop);
    if (place == std::string::npos) continue;
    certain = stopped_ ? std::min(certain, place) : place;
    stopped_ = true;
  }
  std::string text = held_.substr(0, certain);
  held_.erase(0, stopped_ ? held_.size() : certain);
  return text;
}

std::string TextStream::Finish() { return std::exchange(held_, ""); }

}  // namespace atl
