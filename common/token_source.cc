#include "common/token_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr Duration kFresh = Seconds(1);

/// "atoll_ID_SECRET" or the secret alone; a file's name hardly ends with so many hexadecimal digits.
bool LooksLikeAToken(std::string_view path) {
  constexpr size_t kLeastSecret = 32;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t secret = name.size() - (name.find_last_not_of("0123456789abcdef") + 1);
  return secret >= kLeastSecret;
}

}  // namespace

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  if (LooksLikeAToken(path) && !FileExists(path)) {
    return absl::NotFoundError(
        "the value looks like a token, and must be the path of a file that holds it (it is not shown here). "
        "Write the token to a file that only you can read, and give the path of that file");
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path, kMaxTokenBytes));
  const std::string first(contents.begin(), std::find(contents.begin(), contents.end(), '\n'));
  const std::string text(absl::StripAsciiWhitespace(first));
  const bool travels =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!text.empty() && travels) return text;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: the file has no token: its first line is empty or contains blanks", path));
}

absl::StatusOr<std::unique_ptr<TokenSource>> TokenSource::Open(const std::string& path, const Clock* clock) {
  ATOLL_ASSIGN_OR_RETURN(std::string text, ReadTokenFile(path));
  return std::unique_ptr<TokenSource>(new TokenSource(path, clock, std::move(text)));
}

TokenSource::TokenSource(std::string path, const Clock* clock, std::string text)
    : path_(std::move(path)), clock_(clock), text_(std::move(text)), read_at_(clock->Now()) {}

std::string TokenSource::Current() {
  MutexLock lock(&mutex_);
  if (clock_->Now() - read_at_ < kFresh) return text_;
  read_at_ = clock_->Now();
  auto text = ReadTokenFile(path_);
  if (text.ok()) text_ = *std::move(text);
  return text_;
}

}  // namespace atl
