#include "worker/app/eval/csv.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "worker/app/eval/line_error.h"

namespace atl {
namespace {

class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }

  absl::StatusOr<CsvRow> Row() {
    CsvRow row = {.line = line_};
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(std::string field, Field());
      row.fields.push_back(std::move(field));
      if (AtEnd()) return row;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      SkipLineEnd();
      return row;
    }
  }

 private:
  absl::StatusOr<std::string> Field() {
    if (!AtEnd() && text_[at_] == '"') return Quoted();
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    return field;
  }

  absl::StatusOr<std::string> Quoted() {
    const size_t begun = line_;
    std::string field;
    for (++at_; !AtEnd(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        if (AtEnd() || text_[at_] != '"') return Closed(field);
      } else if (c == '\n') {
        ++line_;
      }
      field += c;
    }
    return LineError(path_, begun, "a field in quotes is not closed");
  }

  absl::StatusOr<std::string> Closed(std::string& field) const {
    if (AtEnd() || std::string_view(",\r\n").find(text_[at_]) != std::string_view::npos)
      return std::move(field);
    return LineError(path_, line_, "text follows a field in quotes; a quote inside a field is written twice");
  }

  void SkipLineEnd() {
    if (text_[at_] == '\r') ++at_;
    if (!AtEnd() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  const std::string& path_;
  const std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<CsvRow>> ParseCsv(const std::string& path, std::string_view text) {
  Reader reader(path, text);
  std::vector<CsvRow> rows;
  while (!reader.AtEnd()) {
    ATOLL_ASSIGN_OR_RETURN(CsvRow row, reader.Row());
    if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace atl
