// The scores of evaluation.tasks: a curve for each metric, and the newest values as a table.
import { Chart } from "./chart.js";
import { byId, el, keyed, setText } from "./dom.js";
import { count } from "./format.js";

const COLOURS = ["c-s0", "c-s1", "c-s2", "c-s3", "c-s4", "c-s5", "c-s6", "c-s7"];
const share = (value) => value.toFixed(4);

/** What led to the head of a column; the points that a restore abandoned are left out. */
export function kept(series) {
  return series.tokens.map((x, i) => [x, series.value[i]]).filter((_, i) => !series.abandoned[i]);
}

function rowOf(series) {
  const i = series.abandoned.lastIndexOf(false);
  if (i < 0) return null;
  const error = series.error[i];
  return {
    key: `${series.task} ${series.metric}`,
    cells: [series.task, series.metric, share(series.value[i]), error > 0 ? `±${share(error)}` : "–",
      String(series.questions[i]), String(series.version[i])],
  };
}

const LABELS = ["", "metric", "score", "standard error", "questions", "version"];

export class TaskCard {
  constructor() {
    this.chart = new Chart(byId("tasks-chart"), {
      label: "Scores of tasks", empty: "No task has been scored yet", formatY: share, formatX: count,
      formatTip: (x) => `${count(x)} tokens`, formatTick: (y) => String(Number(y.toFixed(3))),
    });
  }

  show(curve) {
    const tasks = curve.tasks || [];
    byId("tasks-card").hidden = tasks.length === 0;
    if (curve === this.curve || tasks.length === 0) return;
    this.curve = curve;
    const series = tasks.map((one, i) => ({
      name: `${one.task} ${one.metric}`, colour: COLOURS[i % COLOURS.length], dots: true, points: kept(one),
    }));
    byId("tasks-legend").replaceChildren(...series.map((one) => el("span", {}, el("i", { class: one.colour }), one.name)));
    this.chart.show({ series, marks: [] });
    const rows = tasks.map(rowOf).filter(Boolean);
    keyed(byId("tasks"), rows, (row) => row.key,
      () => el("tr", {}, ...LABELS.map((label, i) => el("td", { class: i > 1 ? "num" : i === 0 ? "name" : null, "data-label": label || null }))),
      (element, row) => row.cells.forEach((text, i) => setText(element.children[i], text)));
  }
}
