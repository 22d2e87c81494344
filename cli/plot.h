#ifndef ATOLL_CLI_PLOT_H_
#define ATOLL_CLI_PLOT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace atl {

/// One curve: (x, y) with x ascending. `colour` is an SGR code ("36"), empty for none.
struct Curve {
  std::string name;
  std::string colour;
  std::vector<std::pair<double, double>> points;
};

/// The range of x in words, for the line below the plot.
using RangeText = std::function<std::string(double low, double high)>;

/// Curves drawn with braille dots (2 x 4 a cell) in `width` x `height` cells, y labels at the left, the range
/// of x below. Points that are not finite are left out. Outliers do not set the scale: they are drawn at the
/// edge. Empty when there is nothing to draw or no room. Without `range`, x counts steps.
std::vector<std::string> PlotCurves(const std::vector<Curve>& curves, int width, int height, bool colour,
                                    const RangeText& range = nullptr);

}  // namespace atl

#endif  // ATOLL_CLI_PLOT_H_
