#ifndef ATOLL_SERVER_ACCESS_SAN_PATTERN_H_
#define ATOLL_SERVER_ACCESS_SAN_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// Which names in a certificate mean somebody, and whom: "spiffe://*/worker/{name}",
/// "{name}.islands.example".
/// `{name}` is the name that it proves, `*` any text; neither is empty nor reaches over a '/', and `*` in a
/// DNS name not over a '.'. A pattern with "://" is for URIs, any other for DNS names.
class SanPattern {
 public:
  /// InvalidArgument: no {name}, or more than one of it.
  static absl::StatusOr<SanPattern> Parse(const std::string& text);

  /// What {name} stands for in `san`; nullopt when the pattern does not fit.
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
