#ifndef ATOLL_SERVER_ACCESS_SAN_PATTERN_H_
#define ATOLL_SERVER_ACCESS_SAN_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// A pattern for names in certificates: "spiffe://*/worker/{name}", "{name}.islands.example". `{name}`
/// matches the proven name and `*` any text. Neither matches an empty text or a '/', and `*` in a DNS name
/// matches no '.'. A pattern with "://" is for URIs, any other for DNS names.
class SanPattern {
 public:
  /// InvalidArgument if the pattern does not have exactly one {name}.
  static absl::StatusOr<SanPattern> Parse(const std::string& text);

  /// The text of {name} in `san`; nullopt if the pattern does not match.
  std::optional<std::string> Match(std::string_view san) const;
  const std::string& text() const { return text_; }

 private:
  enum class Kind { kText, kAny, kName };
  struct Part {
    Kind kind = Kind::kText;
    std::string text;
  };
  bool Match(size_t part, std::string_view rest, std::string& name) const;
  bool Reaches(Kind kind, std::string_view text) const;

  std::string text_;
  bool uri_ = false;
  std::vector<Part> parts_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_SAN_PATTERN_H_
