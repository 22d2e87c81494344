// The page of `atollctl compare --html`: its data stands in the page.
const COLOURS = ["c-s0", "c-s1", "c-s2", "c-s3", "c-s4", "c-s5", "c-s6", "c-s7"];
const AXES = {
  tokens: { key: "tokens", format: count, tip: (x) => `${count(x)} tokens` },
  steps: { key: "steps", format: count, tip: (x) => `inner step ${count(x)}` },
  rounds: { key: "rounds", format: count, tip: (x) => `${count(x)} rounds` },
  time: { key: "seconds", format: duration, tip: duration },
  bytes: { key: "bytes", format: bytes, tip: (x) => `${bytes(x)} pushed` },
};
const compared = JSON.parse(byId("data").textContent);
const known = (value, format) => (value === null || value === undefined ? "–" : format(value));
const lossAt = (point) => known(point, (p) => `${knownLoss(p.loss)} at ${count(p.tokens)}`);

function fillTable() {
  const heads = ["run", "last loss", "best loss", `loss at ${count(compared.equal_tokens)} tokens`,
    compared.target_loss === null ? "tokens to equal loss" : `tokens to ${knownLoss(compared.target_loss)}`, "tokens/s", "bytes per token"];
  byId("heads").append(...heads.map((text, i) => el("th", { scope: "col", class: i ? "num" : null }, text)));
  byId("runs").append(...compared.runs.map((run) => el("tr", {},
    ...[run.name, lossAt(run.last), lossAt(run.best), known(run.loss_at_equal_tokens, knownLoss), known(run.tokens_to_target, count),
      run.tokens_per_second > 0 ? count(run.tokens_per_second) : "–", run.bytes_per_token > 0 ? run.bytes_per_token.toPrecision(3) : "–"]
      .map((text, i) => el("td", { class: i ? "num" : "name", "data-label": i ? heads[i] : null }, text)))));
}

const chart = new Chart(byId("chart"), {
  label: `${compared.loss} loss`, robust: true, empty: "No loss is known", formatY: knownLoss,
  formatTick: (y) => String(Number(Math.abs(y) < 5e-4 ? y.toPrecision(3) : y.toFixed(3))),
});

function draw(name) {
  const axis = AXES[name];
  for (const button of byId("axes").children) button.setAttribute("aria-pressed", String(button.id === `by-${name}`));
  const series = compared.runs.map((run, i) => ({
    name: run.name, colour: COLOURS[i % COLOURS.length], dots: run.points.length < 60,
    points: run.points.map((point) => [point[axis.key], point.loss ?? NaN]),
  }));
  // The cursor steps through the run with the most points.
  series.sort((a, b) => b.points.length - a.points.length);
  chart.show({ series, marks: [] }, { formatX: axis.format, formatTip: axis.tip });
}

byId("axes").append(...Object.keys(AXES).map((name) => el("button", { type: "button", id: `by-${name}`, on: { click: () => draw(name) } }, `by ${name}`)));
byId("legend").append(...compared.runs.map((run, i) => el("span", {}, el("i", { class: COLOURS[i % COLOURS.length] }), run.name)));
setText(byId("title"), `${compared.loss === "validation" ? "Validation" : "Training"} loss of ${counted(compared.runs.length, "run")}`);
fillTable();
draw(compared.axis);
