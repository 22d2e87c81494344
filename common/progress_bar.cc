#include "common/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/human.h"

namespace atl {
namespace {

constexpr size_t kBarWidth = 24;
// Earlier pieces do not count for the speed: the first one may come from a buffer.
constexpr Duration kSpeedAfter = Seconds(0.5);

std::string Amount(uint64_t amount, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? HumanBytes(amount) : HumanCount(static_cast<double>(amount));
}

std::string Speed(uint64_t done, Duration elapsed, ProgressUnit unit) {
  if (elapsed < kSpeedAfter) return "";
  const double seconds = ToSeconds(elapsed);
  return absl::StrCat("  ", Amount(static_cast<uint64_t>(static_cast<double>(done) / seconds), unit), "/s");
}

std::string Bar(double fraction) {
  const auto filled = static_cast<size_t>(fraction * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar.push_back('>');
  bar.resize(kBarWidth, ' ');
  return absl::StrCat("[", bar, "]");
}

}  // namespace

ProgressStyle ProgressStyleFor(int fd, const char* term) {
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return ::isatty(fd) == 1 && !dumb ? ProgressStyle::kTerminal : ProgressStyle::kPlain;
}

ProgressBar::ProgressBar(ProgressOptions options, const Clock* clock, std::ostream* out)
    : options_(std::move(options)), clock_(clock), out_(out), started_(clock->Now()), drawn_(started_) {}

ProgressBar::~ProgressBar() {
  if (!finished_ && drawn_width_ > 0) *out_ << '\n' << std::flush;
}

void ProgressBar::Update(uint64_t done) {
  if (finished_) return;
  done_ = done;
  const MonoTime now = clock_->Now();
  const bool terminal = options_.style == ProgressStyle::kTerminal;
  const bool first = terminal && drawn_width_ == 0;
  if (!first && now - drawn_ < (terminal ? options_.redraw : options_.interval)) return;
  drawn_ = now;
  Draw(Line(/*final=*/false));
}

void ProgressBar::Finish() {
  if (finished_) return;
  Draw(Line(/*final=*/true));
  if (options_.style == ProgressStyle::kTerminal) *out_ << '\n';
  *out_ << std::flush;
  finished_ = true;
}

std::string ProgressBar::Line(bool final) const {
  const Duration elapsed = clock_->Now() - started_;
  const std::string speed = Speed(done_, elapsed, options_.unit);
  const std::string amount = Amount(done_, options_.unit);
  if (final) return absl::StrCat(options_.label, "  ", amount, " in ", HumanDuration(elapsed), speed);
  if (options_.total == 0) return absl::StrCat(options_.label, "  ", amount, speed);
  const double fraction = std::min(1.0, static_cast<double>(done_) / static_cast<double>(options_.total));
  const std::string bar = options_.style == ProgressStyle::kTerminal ? absl::StrCat("  ", Bar(fraction)) : "";
  std::string line = absl::StrFormat("%s%s  %3.0f%%  %s of %s%s", options_.label, bar, 100 * fraction, amount,
                                     Amount(options_.total, options_.unit), speed);
  if (fraction > 0 && elapsed >= kSpeedAfter) {
    const double left_s = ToSeconds(elapsed) * (1 / fraction - 1);
    // An estimate below a second is wrong as soon as it is read.
    absl::StrAppend(&line, "  ", left_s < 1 ? "under 1 s" : HumanDuration(Seconds(left_s)), " left");
  }
  return line;
}

void ProgressBar::Draw(const std::string& line) {
  if (options_.style == ProgressStyle::kPlain) {
    *out_ << line << '\n' << std::flush;
    return;
  }
  // Blanks erase the rest of a longer line.
  const size_t blanks = drawn_width_ > line.size() ? drawn_width_ - line.size() : 0;
  *out_ << '\r' << line << std::string(blanks, ' ') << std::flush;
  drawn_width_ = line.size();
}

}  // namespace atl
