#include "core/bounded_json.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/foreign_name.h"

namespace atl {
namespace {

using Json = nlohmann::json;

/// Follows the parser without keeping a value, and stops it at the first problem.
class BoundsCheck final : public nlohmann::json_sax<Json> {
 public:
  explicit BoundsCheck(const JsonBounds& bounds) : bounds_(bounds) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (!open_.back().insert(name).second) {
      problem_ = absl::StrFormat("names '%s' twice in one object", ForeignName(name));
      return false;
    }
    return Count();
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    problem_ = "is not JSON";
    return false;
  }

 private:
  bool Count() {
    if (++values_ <= bounds_.values) return true;
    problem_ = absl::StrFormat("holds more than %d values", bounds_.values);
    return false;
  }
  bool Open() {
    open_.emplace_back();
    if (open_.size() <= bounds_.depth) return Count();
    problem_ = absl::StrFormat("is nested deeper than %d levels", bounds_.depth);
    return false;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const JsonBounds bounds_;
  std::vector<std::set<std::string>> open_;  // names of the members of each open object; arrays have none
  size_t values_ = 0;
  std::string problem_;
};

}  // namespace

absl::StatusOr<Json> ParseBoundedJson(std::string_view text, const JsonBounds& bounds) {
  BoundsCheck check(bounds);
  if (!Json::sax_parse(text.begin(), text.end(), &check)) {
    return absl::InvalidArgumentError(check.problem().empty() ? "is not JSON" : check.problem());
  }
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

const Json* JsonAt(const Json& json, std::string_view path) {
  const Json* found = &json;
  for (const auto part : absl::StrSplit(std::string(path), '.')) {
    if (!found->is_object()) return nullptr;
    const auto member = found->find(std::string(part));
    if (member == found->end()) return nullptr;
    found = &*member;
  }
  return found;
}

}  // namespace atl
