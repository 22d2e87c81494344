#include "client/ipc/status_page.h"

#include <algorithm>
#include <cstring>

namespace atl::ipc {
namespace {

constexpr int kAttempts = 1000;
constexpr size_t kHeaderWords = 2;

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

}  // namespace

StatusPage::StatusPage(std::span<std::byte> memory)
    : words_(reinterpret_cast<std::atomic<uint64_t>*>(memory.data()), memory.size() / sizeof(uint64_t)) {}

void StatusPage::Write(std::string_view text) {
  if (text.size() > (words_.size() - kHeaderWords) * sizeof(uint64_t)) return;
  const uint64_t before = words_[0].load(std::memory_order_relaxed);
  words_[0].store(before + 1, std::memory_order_relaxed);
  // Each store of the text releases: a reader that sees one sees the odd number too. (No fences:
  // ThreadSanitizer does not know them.)
  words_[1].store(text.size(), std::memory_order_release);
  for (size_t at = 0, word = kHeaderWords; at < text.size(); at += sizeof(uint64_t), ++word) {
    uint64_t value = 0;
    std::memcpy(&value, text.data() + at, std::min(sizeof(value), text.size() - at));
    words_[word].store(value, std::memory_order_release);
  }
  words_[0].store(before + 2, std::memory_order_release);
}

std::optional<std::string> StatusPage::Read() const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t before = words_[0].load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    const uint64_t bytes = words_[1].load(std::memory_order_acquire);
    if (bytes > (words_.size() - kHeaderWords) * sizeof(uint64_t)) continue;
    std::string text(bytes, '\0');
    for (size_t at = 0, word = kHeaderWords; at < bytes; at += sizeof(uint64_t), ++word) {
      const uint64_t value = words_[word].load(std::memory_order_acquire);
      std::memcpy(text.data() + at, &value, std::min<size_t>(sizeof(value), bytes - at));
    }
    if (words_[0].load(std::memory_order_relaxed) == before) return text;
  }
  return std::nullopt;
}

}  // namespace atl::ipc
