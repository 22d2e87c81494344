#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "worker/data/input/first_bytes.h"
#include "worker/data/input/text_batch.h"
#include "worker/data/input/text_source.h"

namespace atl {
namespace {

constexpr size_t kLinesBytes = size_t{1} << 20;
// A whole line is in memory. A longer one is rather a file of another kind.
constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class JsonLinesReader final : public TextReader {
 public:
  JsonLinesReader(TextSource source, std::string path) : source_(std::move(source)), path_(std::move(path)) {}

  uint64_t position() const override { return source_.position(); }

  absl::StatusOr<bool> Next(TextBatch& batch) override {
    batch = TextBatch();
    batch.format = TextFormat::kJsonLines;
    ATOLL_ASSIGN_OR_RETURN(const size_t cut, FillToLineEnd());
    if (cut == 0) return false;
    batch.first_line = next_line_;
    batch.end = cut;
    std::string rest = waiting_.substr(cut);
    waiting_.resize(cut);
    next_line_ += static_cast<uint64_t>(std::count(waiting_.begin(), waiting_.end(), '\n'));
    batch.text = std::exchange(waiting_, std::move(rest));
    return true;
  }

 private:
  /// The end of the last waiting line; 0 at the end of the file.
  absl::StatusOr<size_t> FillToLineEnd() {
    size_t wanted = kLinesBytes;
    while (true) {
      while (!ended_ && waiting_.size() < wanted) {
        const size_t before = waiting_.size();
        const absl::Status read = source_.Read(kLinesBytes, waiting_);
        if (!read.ok()) {
          const auto lines = std::count(waiting_.begin(), waiting_.end(), '\n');
          return absl::Status(read.code(), absl::StrCat(std::string(read.message()), " (after line ",
                                                        next_line_ - 1 + static_cast<uint64_t>(lines), ")"));
        }
        ended_ = waiting_.size() == before;
      }
      if (first_) {
        first_ = false;
        ATOLL_RETURN_IF_ERROR(CheckIsText(path_, std::string_view(waiting_).substr(0, kFirstBytes)));
        if (waiting_.starts_with(kByteOrderMark)) waiting_.erase(0, kByteOrderMark.size());
      }
      if (ended_) return waiting_.size();
      const size_t end = waiting_.rfind('\n');
      if (end != std::string::npos) return end + 1;
      if (waiting_.size() > kMaxLineBytes) {
        return absl::InvalidArgumentError(
            absl::StrFormat("text file %s, line %d: longer than %s; JSON lines have one document a line, so "
                            "write long documents as text files",
                            path_, next_line_, HumanBytes(kMaxLineBytes)));
      }
      wanted = std::min(2 * waiting_.size(), kMaxLineBytes + 1);
    }
  }

  TextSource source_;
  const std::string path_;
  std::string waiting_;
  uint64_t next_line_ = 1;  // of the first waiting byte
  bool first_ = true, ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextReader>> OpenJsonLines(const InputFile& file) {
  ATOLL_ASSIGN_OR_RETURN(TextSource source, TextSource::Open(file.path));
  return std::make_unique<JsonLinesReader>(std::move(source), file.path);
}

}  // namespace atl
