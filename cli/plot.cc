#include "cli/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/loss_text.h"

namespace atl {
namespace {

constexpr int kLabelWidth = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return low > high; }
  double Fraction(double v) const {
    if (!(high > low)) return 0.5;
    // The difference of two finite values may be infinite.
    return std::isfinite(high - low) ? (v - low) / (high - low) : (v / 2 - low / 2) / (high / 2 - low / 2);
  }
};

// Fewer values do not show what is usual.
constexpr size_t kLeastForScale = 10;

/// The median of a value and its two neighbours on each side, which removes single outliers.
double Smoothed(const std::vector<double>& values, size_t i) {
  const size_t first = i < 2 ? 0 : i - 2;
  const size_t end = std::min(values.size(), i + 3);
  std::vector<double> near(values.begin() + static_cast<std::ptrdiff_t>(first),
                           values.begin() + static_cast<std::ptrdiff_t>(end));
  std::ranges::sort(near);
  return near[(near.size() - 1) / 2];
}

/// The range of the smoothed curves, extended by twice its size on both sides, but not beyond the values. So
/// a curve keeps its steep beginning, and outliers do not set the scale.
Range RobustRange(const std::vector<std::vector<double>>& lines) {
  Range all, smooth;
  size_t count = 0;
  for (const std::vector<double>& values : lines) {
    count += values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      all.Add(values[i]);
      if (values.size() > 2) smooth.Add(Smoothed(values, i));
    }
  }
  if (count < kLeastForScale || smooth.empty()) return all;
  // A curve that is flat except for one step keeps the step.
  const double spread =
      std::max(2 * (smooth.high - smooth.low), 1e-3 * std::max(std::abs(smooth.low), std::abs(smooth.high)));
  return {.low = std::max(all.low, smooth.low - spread), .high = std::min(all.high, smooth.high + spread)};
}

/// A grid of dots, 2 wide and 4 high per cell; each cell remembers the curve that drew last in it.
class DotGrid {
 public:
  DotGrid(int width, int height)
      : width_(width),
        height_(height),
        dots_(static_cast<size_t>(width) * static_cast<size_t>(height), 0),
        owner_(dots_.size(), -1) {}

  void Set(int x, int y, int curve) {
    // Bits of U+2800's dots by (column, row), from the Unicode braille block.
    static constexpr int kBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    if (x < 0 || y < 0 || x >= width_ * 2 || y >= height_ * 4) return;
    const int cell = (y / 4) * width_ + x / 2;
    dots_[cell] |= kBits[x % 2][y % 4];
    owner_[cell] = curve;
  }

  void Line(int x0, int y0, int x1, int y1, int curve) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      Set(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, curve);
    }
  }

  std::string Row(int row, const std::vector<Curve>& curves, bool colour) const {
    std::string text;
    for (int column = 0; column < width_; ++column) {
      const int cell = row * width_ + column;
      if (dots_[cell] == 0) {
        text += ' ';
        continue;
      }
      const std::string glyph = {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots_[cell] >> 6)),
                                 static_cast<char>(0x80 | (dots_[cell] & 0x3F))};
      const std::string& sgr = curves[owner_[cell]].colour;
      text += colour && !sgr.empty() ? absl::StrCat("\x1b[", sgr, "m", glyph, "\x1b[0m") : glyph;
    }
    return text;
  }

 private:
  const int width_;
  const int height_;
  std::vector<int> dots_;
  std::vector<int> owner_;
};

std::string Legend(const std::vector<Curve>& curves, bool colour) {
  std::string text;
  for (const Curve& curve : curves) {
    if (curve.points.empty()) continue;
    const std::string name = "── " + curve.name + "   ";
    text += colour && !curve.colour.empty() ? "\x1b[" + curve.colour + "m" + name + "\x1b[0m" : name;
  }
  return text;
}

}  // namespace

std::vector<std::string> PlotCurves(const std::vector<Curve>& curves, int width, int height, bool colour,
                                    const RangeText& range) {
  Range xs;
  std::vector<std::vector<double>> lines_of_y;
  for (const Curve& curve : curves) {
    std::vector<double>& values = lines_of_y.emplace_back();
    for (const auto& [x, y] : curve.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      xs.Add(x);
      values.push_back(y);
    }
  }
  const Range ys = RobustRange(lines_of_y);
  const int columns = width - kLabelWidth - 2;
  const int rows = height - 2;
  if (xs.empty() || columns < 10 || rows < 2) return {};

  DotGrid grid(columns, rows);
  for (size_t c = 0; c < curves.size(); ++c) {
    int last_x = -1, last_y = -1;
    for (const auto& [x, y] : curves[c].points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      const int px = static_cast<int>(std::lround(xs.Fraction(x) * (columns * 2 - 1)));
      const double inside = std::clamp(y, ys.low, ys.high);
      const int py = static_cast<int>(std::lround((1 - ys.Fraction(inside)) * (rows * 4 - 1)));
      grid.Line(last_x < 0 ? px : last_x, last_x < 0 ? py : last_y, px, py, static_cast<int>(c));
      last_x = px;
      last_y = py;
    }
  }
  std::vector<std::string> lines;
  for (int row = 0; row < rows; ++row) {
    const bool labelled = row == 0 || row == rows - 1 || row == rows / 2;
    const double value = std::lerp(ys.high, ys.low, static_cast<double>(row) / std::max(rows - 1, 1));
    lines.push_back((labelled ? LossNumber(value, kLabelWidth) : std::string(kLabelWidth, ' ')) +
                    (labelled ? " ┤" : " │") + grid.Row(row, curves, colour));
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += "─";
  lines.push_back(std::string(kLabelWidth, ' ') + " └" + axis);
  lines.push_back(std::string(kLabelWidth + 2, ' ') + Legend(curves, colour) +
                  (range ? range(xs.low, xs.high) : absl::StrFormat("step %.0f to %.0f", xs.low, xs.high)));
  return lines;
}

}  // namespace atl
