#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace atl {

Terminal InspectTerminal() {
  Terminal terminal;
  terminal.interactive = isatty(STDOUT_FILENO) == 1;
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  terminal.style.colour = terminal.interactive && !dumb && std::getenv("NO_COLOR") == nullptr;
  if (dumb) terminal.interactive = false;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    terminal.style.width = std::clamp<int>(size.ws_col, 20, 160);
    terminal.style.height = std::clamp<int>(size.ws_row, 2, 60);
  }
  return terminal;
}

ProgressStyle ErrorStreamStyle() { return ProgressStyleFor(STDERR_FILENO, std::getenv("TERM")); }

LiveView::LiveView() { std::fputs("\x1b[?1049h\x1b[?25l\x1b[?7l", stdout); }

LiveView::~LiveView() {
  std::fputs("\x1b[?7h\x1b[?25h\x1b[?1049l", stdout);
  std::fflush(stdout);
}

void LiveView::Draw(const std::vector<std::string>& lines, int height) {
  std::string frame = "\x1b[H";
  const size_t shown = std::min(lines.size(), static_cast<size_t>(std::max(height - 1, 1)));
  for (size_t i = 0; i < shown; ++i) frame += lines[i] + "\x1b[K\n";
  frame += "\x1b[J";
  std::fwrite(frame.data(), 1, frame.size(), stdout);
  std::fflush(stdout);
}

}  // namespace atl
