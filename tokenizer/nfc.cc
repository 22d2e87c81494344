#include "tokenizer/nfc.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace atl {
namespace {

#include "tokenizer/nfc_tables.inc"

// Hangul syllables are composed by arithmetic (Unicode 16.0, section 3.12).
constexpr uint32_t kSyllables = 0xac00, kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11a7;
constexpr uint32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28;
constexpr uint32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

struct Pair {
  uint32_t first;
  uint32_t second;  // 0: none
};

class Tables {
 public:
  Tables() : combining_(kCodePoints), unstable_(kCodePoints) {
    for (size_t run = 0; run < std::size(kCombiningRuns); ++run) {
      const size_t end = run + 1 < std::size(kCombiningRuns) ? kCombiningRuns[run + 1] >> 8 : kCodePoints;
      const auto value = static_cast<uint8_t>(kCombiningRuns[run] & 0xff);
      for (size_t point = kCombiningRuns[run] >> 8; point < end; ++point) {
        combining_[point] = value;
        unstable_[point] = value != 0;
      }
    }
    for (size_t i = 0; i < std::size(kDecompositions); i += 3) {
      const uint32_t point = kDecompositions[i] >> 1;
      const Pair parts{kDecompositions[i + 1], kDecompositions[i + 2]};
      decompositions_[point] = parts;
      if ((kDecompositions[i] & 1) != 0) {
        compositions_[Key(parts.first, parts.second)] = point;
        unstable_[parts.second] = true;  // composes with the character before it
      } else {
        unstable_[point] = true;
      }
    }
    for (uint32_t i = 0; i < kVowelCount; ++i) unstable_[kVowel + i] = true;
    for (uint32_t i = 1; i < kTrailingCount; ++i) unstable_[kTrailing + i] = true;
  }

  uint8_t Combining(uint32_t point) const { return combining_[point]; }
  /// False for characters that NFC never changes and that never combine with an earlier one.
  bool Unstable(uint32_t point) const { return unstable_[point]; }

  void Decompose(uint32_t point, std::vector<uint32_t>& out) const {
    if (point - kSyllables < kSyllableCount) {
      const uint32_t index = point - kSyllables;
      out.push_back(kLeading + index / (kVowelCount * kTrailingCount));
      out.push_back(kVowel + index / kTrailingCount % kVowelCount);
      if (index % kTrailingCount != 0) out.push_back(kTrailing + index % kTrailingCount);
      return;
    }
    const auto found = decompositions_.find(point);
    if (found == decompositions_.end()) {
      out.push_back(point);
      return;
    }
    // A decomposition is at most a few steps deep, and only its first part has another one.
    Decompose(found->second.first, out);
    if (found->second.second != 0) out.push_back(found->second.second);
  }

  /// 0: the two do not compose.
  uint32_t Compose(uint32_t first, uint32_t second) const {
    if (first - kLeading < kLeadingCount && second - kVowel < kVowelCount) {
      return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowel)) * kTrailingCount;
    }
    if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailingCount == 0 &&
        second - kTrailing - 1 < kTrailingCount - 1) {
      return first + (second - kTrailing);
    }
    const auto found = compositions_.find(Key(first, second));
    return found == compositions_.end() ? 0 : found->second;
  }

 private:
  static uint64_t Key(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

  std::vector<uint8_t> combining_;
  std::vector<bool> unstable_;
  absl::flat_hash_map<uint32_t, Pair> decompositions_;
  absl::flat_hash_map<uint64_t, uint32_t> compositions_;
};

const Tables& GetTables() {
  static const Tables tables;
  return tables;
}

/// Sorts each run of marks by their combining classes; equal ones keep their order.
void Order(const Tables& tables, std::vector<uint32_t>& points) {
  for (auto at = points.begin(); at != points.end();) {
    if (tables.Combining(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, points.end(), [&](uint32_t p) { return tables.Combining(p) == 0; });
    std::stable_sort(at, end,
                     [&](uint32_t a, uint32_t b) { return tables.Combining(a) < tables.Combining(b); });
    at = end;
  }
}

/// Composes in place (Unicode 16.0, section 3.11, D117).
void Compose(const Tables& tables, std::vector<uint32_t>& points) {
  size_t written = 0;
  size_t starter = points.size();  // where in the output; none yet
  uint8_t last = 0;                // class of the mark that was kept last since the starter
  for (const uint32_t point : points) {
    const uint8_t combining = tables.Combining(point);
    if (starter < written) {
      const bool blocked = starter + 1 < written && (last == 0 || last >= combining);
      const uint32_t composed = blocked ? 0 : tables.Compose(points[starter], point);
      if (composed != 0) {
        points[starter] = composed;
        continue;
      }
    }
    if (combining == 0) starter = written;
    last = combining;
    points[written++] = point;
  }
  points.resize(written);
}

}  // namespace

bool NeedsNfc(std::string_view text) {
  const Tables& tables = GetTables();
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    // All below U+0300 is stable: ASCII, and two bytes up to 0xcb.
    if (static_cast<uint8_t>(*at) < 0xcc) {
      ++at;
      continue;
    }
    const CodePoint point = DecodeUtf8(at, end);
    if (tables.Unstable(point.value)) return true;
    at += point.bytes;
  }
  return false;
}

void ToNfc(std::string_view text, std::string& out) {
  const Tables& tables = GetTables();
  const char* const end = text.data() + text.size();
  const char* copied = text.data();
  const char* before = nullptr;  // the stable character before `at`; null: none, or an invalid byte
  std::vector<uint32_t> points;
  for (const char* at = text.data(); at < end;) {
    CodePoint point = DecodeUtf8(at, end);
    if (!point.valid || !tables.Unstable(point.value)) {
      before = point.valid ? at : nullptr;
      at += point.bytes;
      continue;
    }
    // From the stable character before to the next stable one.
    const char* const start = before == nullptr ? at : before;
    out.append(copied, start);
    points.clear();
    if (start < at) tables.Decompose(DecodeUtf8(start, end).value, points);
    while (point.valid && tables.Unstable(point.value)) {
      tables.Decompose(point.value, points);
      at += point.bytes;
      if (at >= end) break;
      point = DecodeUtf8(at, end);
    }
    Order(tables, points);
    Compose(tables, points);
    for (const uint32_t p : points) AppendUtf8(p, out);
    copied = at;
    before = nullptr;
  }
  out.append(copied, end);
}

}  // namespace atl
