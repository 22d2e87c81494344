#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "common/status.h"
#include "worker/data/input/first_bytes.h"
#include "worker/data/input/json_line.h"
#include "worker/data/input/text_batch.h"
#include "worker/data/input/text_source.h"

namespace atl {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
// Text that waits for a place to cut. No real text has so much without a line end before a letter; one that
// does is cut.
constexpr size_t kMostWaiting = size_t{16} << 20;
constexpr char kNul[] = "a NUL byte: this is binary data or UTF-16, not UTF-8 text";
constexpr char kNotUtf8[] = "invalid UTF-8; convert the file, for example with `iconv -f latin1 -t utf-8`";

/// The end of the last whole code point: at most three bytes earlier.
size_t CodePointEnd(std::string_view text) {
  size_t end = text.size();
  while (end > 1 && text.size() - end < 3 && (static_cast<uint8_t>(text[end - 1]) & 0xc0) == 0x80) --end;
  return static_cast<uint8_t>(text[end - 1]) >= 0xc0 ? end - 1 : text.size();
}

class PlainTextReader final : public TextReader {
 public:
  PlainTextReader(TextSource source, std::string path, const TextReaderOptions& options)
      : source_(std::move(source)), path_(std::move(path)), options_(options) {}

  uint64_t position() const override { return source_.position(); }

  absl::StatusOr<bool> Next(TextBatch& batch) override {
    batch = TextBatch();
    while (true) {
      ATOLL_ASSIGN_OR_RETURN(const size_t cut, FillToCut());
      const bool last = ended_ && cut == waiting_.size();
      const char after = last ? '\0' : waiting_[cut];
      ATOLL_RETURN_IF_ERROR(Take(cut, batch));
      any_ = any_ || !batch.text.empty();
      if (options_.hash_documents) digest_.Update(batch.text);
      batch.end = batch.text.size();
      if (!last) {
        if (batch.text.empty()) continue;  // all of its lines were bad
        batch.text += after;
        return true;
      }
      if (done_) return false;
      done_ = true;
      batch.ends_document = any_;
      if (options_.hash_documents) batch.hash = DocumentHashOf(digest_.FinishHex());
      return any_ || !batch.bad_lines.empty();
    }
  }

 private:
  /// Why a line is bad; null: it is not.
  const char* Fault(std::string_view line) const {
    if (std::memchr(line.data(), '\0', line.size()) != nullptr) return kNul;
    return options_.any_encoding || IsValidUtf8(line) ? nullptr : kNotUtf8;
  }

  /// Reads until there is a piece with a place to cut, or the end of the file.
  absl::StatusOr<size_t> FillToCut() {
    size_t wanted = kPieceBytes;
    while (true) {
      while (!ended_ && waiting_.size() < wanted) {
        const size_t before = waiting_.size();
        absl::Status read = source_.Read(kPieceBytes, waiting_);
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
        if (!options_.any_text) {
          ATOLL_RETURN_IF_ERROR(
              CheckIsNotJsonLines(path_, std::string_view(waiting_).substr(0, kFirstBytes)));
        }
      }
      if (ended_) return waiting_.size();
      const size_t cut = options_.last_cut(waiting_);
      // Behind a cut there is always text, which the encoder looks at.
      if (cut > 0 && cut < waiting_.size()) return cut;
      if (waiting_.size() >= kMostWaiting)
        return CodePointEnd(std::string_view(waiting_).substr(0, kMostWaiting - 1));
      wanted = 2 * waiting_.size();
    }
  }

  /// Moves the front of the waiting text into the batch, without its bad lines.
  absl::Status Take(size_t cut, TextBatch& batch) {
    const std::string_view piece = std::string_view(waiting_).substr(0, cut);
    if (Fault(piece) == nullptr) {
      batch.text.append(piece);
      next_line_ += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    } else {
      ATOLL_RETURN_IF_ERROR(TakeGoodLines(piece, batch));
    }
    waiting_.erase(0, cut);
    return absl::OkStatus();
  }

  absl::Status TakeGoodLines(std::string_view piece, TextBatch& batch) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      const std::string_view line = piece.substr(0, end == std::string_view::npos ? end : end + 1);
      piece.remove_prefix(line.size());
      if (const char* const fault = Fault(line)) {
        const BadLine bad{next_line_, fault};
        if (!options_.skip_bad_lines) return BadLineError(path_, bad);
        batch.bad_lines.push_back(bad);
      } else {
        batch.text.append(line);
      }
      if (end != std::string_view::npos) ++next_line_;
    }
    return absl::OkStatus();
  }

  TextSource source_;
  const std::string path_;
  const TextReaderOptions options_;
  std::string waiting_;
  Sha256 digest_;
  uint64_t next_line_ = 1;  // of the first waiting byte
  bool first_ = true, ended_ = false, done_ = false;
  bool any_ = false;  // there is text that is not bad
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextReader>> OpenPlainText(const InputFile& file,
                                                          const TextReaderOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(TextSource source, TextSource::Open(file.path));
  return std::make_unique<PlainTextReader>(std::move(source), file.path, options);
}

}  // namespace atl
