// Line charts in SVG: several series over one axis, marks, and a cursor for pointer and arrow keys.
import { el, svg } from "./dom.js";

const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;

const LARGEST = Number.MAX_VALUE / 4; // so that the difference of two values of a scale is finite

/**
 * [low, high] as the scale of an axis: finite, no wider than numbers allow, and so wide that a double tells its parts apart.
 * A scale that is too narrow grows on both sides, by a share of its values. `equal`: how far one value alone reaches. Without
 * a value (low > high): [0, 1].
 */
export function axisRange(low, high, equal = (value) => Math.abs(value) * 0.1 || 1) {
  if (!(low <= high)) return [0, 1];
  [low, high] = [low, high].map((value) => Math.min(Math.max(value, -LARGEST), LARGEST));
  if (low === high) high = Math.min(low + equal(low), LARGEST);
  const least = Math.max(2 ** -40 * Math.max(Math.abs(low), Math.abs(high)), 2 ** -1000);
  if (high - low >= least) return [low, high];
  return [Math.max(low - least, -LARGEST), Math.min(high + least, LARGEST)];
}

/**
 * About `wanted` round numbers that cover [low, high], at most `wanted` + 2; `steps`: what a step may be a multiple of. Only
 * [low] where doubles have no such numbers: see axisRange.
 */
export function ticks(low, high, wanted, steps = null, binary = false) {
  const parts = Math.max(1, wanted);
  const raw = (high - low) / parts;
  if (!(raw > 0 && raw < Infinity)) return [low];
  let step;
  if (steps) {
    step = steps.find((s) => s >= raw) || Math.ceil(raw / steps.at(-1)) * steps.at(-1);
  } else {
    const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log(raw) / Math.log(1024))) : 1;
    const power = unit * 10 ** Math.floor(Math.log10(raw / unit));
    step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) || 10 * power;
  }
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  // Near 2^53 a double has no next whole number. Not a number: the step is 0 or infinite.
  if (!(Math.max(Math.abs(first), Math.abs(last)) < 2 ** 50 && step < Infinity)) return [low];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step).filter(Number.isFinite);
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** Each value as the median of itself and its two neighbours on both sides: a value that stands alone goes. */
function smoothed(values) {
  return values.map((_, i) => {
    const near = values.slice(Math.max(0, i - 2), i + 3).sort((a, b) => a - b);
    return near[(near.length - 1) >> 1];
  });
}

/**
 * What sets the scale, of the values of every line: where the smoothed lines run, and twice as much again on both sides, no wider
 * than the values are. So a curve keeps its steep beginning, and a few values far from their neighbours are drawn at the edge.
 */
export function robustExtent(lists) {
  const lines = lists.map((list) => list.filter(Number.isFinite));
  const all = extent(lines.flat());
  if (lines.flat().length < 10) return all;
  const [low, high] = extent(lines.filter((line) => line.length > 2).flatMap(smoothed));
  if (!(low <= high)) return all;
  const spread = Math.max(2 * (high - low), 1e-3 * Math.max(Math.abs(low), Math.abs(high)));
  return [Math.max(all[0], low - spread), Math.min(all[1], high + spread)];
}

/** Index of the point whose x is nearest. */
function nearest(points, x) {
  let best = -1;
  for (let i = 0; i < points.length; i++) {
    if (best < 0 || Math.abs(points[i][0] - x) < Math.abs(points[best][0] - x)) best = i;
  }
  return best;
}

export class Chart {
  /**
   * options: label, empty (what is said without points), formatX, formatY, formatTick (y at the axis), formatTip (x in the
   * tip), timeSteps (for the x axis), fromZero, robust (a few absurd y do not set the scale), binary (y counts bytes), left (room for the axis).
   */
  constructor(place, options) {
    this.place = place;
    this.left = options.left || 40;
    this.options = options;
    this.data = { series: [], marks: [] };
    this.cursor = null; // an x
    this.picture = svg("svg", { role: "img", tabindex: 0 });
    this.tip = el("div", { class: "tip", hidden: true });
    this.empty = el("div", { class: "empty" }, options.empty);
    place.append(this.picture, this.tip, this.empty);
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerdown", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.moveTo(null));
    this.picture.addEventListener("blur", () => this.moveTo(null));
    this.picture.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /**
   * series: {name, colour (c-s0..), thin, dots, head (a dot at the last point), points: [[x, y, begins a line of its own]]}, the
   * first leads the cursor; marks: {x, text, kind, label}.
   */
  show(data, options = {}) {
    this.data = data;
    Object.assign(this.options, options);
    this.draw();
  }

  draw() {
    const width = this.place.clientWidth;
    const height = this.place.clientHeight;
    const all = this.data.series.flatMap((series) => series.points);
    const [lowX, highX] = extent(all.map((p) => p[0]));
    this.picture.replaceChildren();
    this.empty.hidden = Number.isFinite(lowX);
    this.picture.setAttribute("aria-label", this.describe());
    if (!Number.isFinite(lowX) || width < 60) { this.tip.hidden = true; return; }
    let [lowY, highY] = this.options.robust
      ? robustExtent(this.data.series.map((series) => series.points.map((p) => p[1]))) : extent(all.map((p) => p[1]));
    if (this.options.fromZero) lowY = Math.min(0, lowY);
    [lowY, highY] = axisRange(lowY, highY);
    const room = (highY - lowY) * 0.06;
    this.y0 = this.options.fromZero ? lowY : lowY - room;
    this.y1 = highY + room;
    [this.x0, this.x1] = axisRange(lowX, highX, () => 1);
    this.width = width;
    this.height = height;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.axes();
    this.marks();
    for (const series of this.data.series.slice().reverse()) this.line(series);
    this.drawCursor();
  }

  x(value) {
    const inside = Math.min(Math.max(value, this.x0), this.x1);
    return this.left + ((inside - this.x0) / (this.x1 - this.x0)) * (this.width - this.left - RIGHT);
  }
  y(value) {
    const inside = Math.min(Math.max(value, this.y0), this.y1);
    return TOP + (1 - (inside - this.y0) / (this.y1 - this.y0)) * (this.height - TOP - BOTTOM);
  }

  axes() {
    const bottom = this.height - BOTTOM;
    const format = this.options.formatTick || this.options.formatY;
    for (const value of ticks(this.y0, this.y1, Math.max(2, this.height / 55), null, this.options.binary)) {
      const y = this.y(value);
      this.picture.append(svg("line", { class: "grid", x1: this.left, x2: this.width - RIGHT, y1: y, y2: y }),
        svg("text", { x: this.left - 8, y: y + 4, "text-anchor": "end" }, format(value)));
    }
    this.picture.append(svg("line", { class: "base", x1: this.left, x2: this.width - RIGHT, y1: bottom, y2: bottom }));
    for (const value of ticks(this.x0, this.x1, Math.max(2, this.width / 110), this.options.timeSteps)) {
      const x = this.x(value);
      if (x > this.width - 22) continue;
      this.picture.append(svg("text", { x, y: this.height - 7, "text-anchor": x < this.left + 20 ? "start" : "middle" },
        this.options.formatX(value)));
    }
  }

  marks() {
    const bottom = this.height - BOTTOM;
    for (const mark of this.data.marks) {
      if (mark.x < this.x0 || mark.x > this.x1) continue;
      const x = this.x(mark.x);
      const group = svg("g", { class: `mark m-${mark.kind}` });
      group.append(svg("line", { x1: x, x2: x, y1: TOP, y2: bottom, "stroke-dasharray": "2 4" }));
      const up = mark.kind !== "leave";
      group.append(svg("path", { d: up ? `M${x - 4} ${bottom}l4 -7l4 7z` : `M${x - 4} ${bottom - 7}l4 7l4 -7z` }));
      group.append(svg("title", {}, mark.text));
      if (mark.label) {
        const left = x > this.width - 80;
        group.append(svg("text", { x: left ? x - 5 : x + 5, y: TOP + 9, "text-anchor": left ? "end" : "start" }, mark.label));
      }
      this.picture.append(group);
    }
  }

  line(series) {
    let path = "";
    let pen = false;
    for (const [x, y, begins] of series.points) {
      if (!Number.isFinite(y)) { pen = false; continue; }
      if (begins) pen = false;
      path += `${pen ? "L" : "M"}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`;
      pen = true;
    }
    this.picture.append(svg("path", { class: `line ${series.thin ? "thin " : ""}${series.colour}`, d: path }));
    if (!series.dots && !series.head && series.points.length > 1) return;
    const every = series.dots ? Math.ceil(series.points.length / 60) : Infinity;
    series.points.forEach(([x, y], i) => {
      const shown = i + 1 === series.points.length || (series.dots && i % every === 0);
      if (!Number.isFinite(y) || !shown) return;
      this.picture.append(svg("circle", { class: `dot f ${series.colour}`, cx: this.x(x), cy: this.y(y), r: 3.2 }));
    });
  }

  point(event) {
    const box = this.picture.getBoundingClientRect();
    const share = (event.clientX - box.left - this.left) / (this.width - this.left - RIGHT);
    const points = this.data.series[0]?.points || [];
    const i = nearest(points, this.x0 + share * (this.x1 - this.x0));
    this.moveTo(i < 0 ? null : points[i][0]);
  }

  key(event) {
    const points = this.data.series[0]?.points || [];
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || points.length === 0) return;
    event.preventDefault();
    const at = (this.cursor === null ? points.length : nearest(points, this.cursor)) + steps[event.key];
    this.moveTo(points[Math.max(0, Math.min(points.length - 1, at))][0]);
  }

  moveTo(x) {
    this.cursor = x;
    this.drawCursor();
  }

  drawCursor() {
    this.picture.querySelector(".cursor")?.remove();
    this.tip.hidden = this.cursor === null || this.data.series.length === 0;
    if (this.tip.hidden) return;
    const x = this.x(this.cursor);
    this.picture.append(svg("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM }));
    this.tip.replaceChildren(el("b", {}, (this.options.formatTip || this.options.formatX)(this.cursor)));
    for (const series of this.data.series.slice(0, 10)) {
      const i = nearest(series.points, this.cursor);
      if (i < 0 || !Number.isFinite(series.points[i][1])) continue;
      const far = Math.abs(series.points[i][0] - this.cursor) > (this.x1 - this.x0) * 0.08;
      if (!far) this.tip.append(el("div", {}, `${series.name}: ${this.options.formatY(series.points[i][1])}`));
    }
    const left = x > this.width / 2 ? x - this.tip.offsetWidth - 12 : x + 12;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${TOP + 4}px`;
  }

  describe() {
    const parts = this.data.series.filter((series) => series.points.length > 0 && !series.thin).map((series) => {
      const [first, last] = [series.points[0][1], series.points.at(-1)[1]];
      return `${series.name} from ${this.options.formatY(first)} to ${this.options.formatY(last)}`;
    });
    return `${this.options.label}: ${parts.join("; ") || this.options.empty}. Use the arrow keys to read single points.`;
  }
}
