// The top of the page: state, waits, numbers, and the two charts.
import { Chart } from "./chart.js";
import { ComparedRuns } from "./compare.js";
import { byId, el, keyed, setClass, setText } from "./dom.js";
import { bytes, clock, count, counted, duration, knownLoss, loss, num, percent, seconds, word } from "./format.js";

const STATE_LOOKS = { training: "good", finished: "calm", stopped: "calm", paused: "calm", critical: "bad" };
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
const SHOWN_REFUSALS = 4;
const COLOURS = ["c-s2", "c-s3", "c-s4", "c-s5", "c-s6", "c-s7"];

/** How far the run is. The last round may exceed the plan, so a finished run shows its tokens without "of". */
export function progressOf(status) {
  const committed = num(status.committedTokens);
  const total = num(status.totalTokens);
  if (status.state === "RUN_STATE_FINISHED") return [`${count(committed)} tokens (${count(total)} planned)`];
  return [
    `${percent(total > 0 ? committed / total : 0)} of ${count(total)} tokens`,
    `inner step ${Math.round(num(status.positionSteps))} of ${num(status.totalSteps)}`,
  ];
}

export function showState(status) {
  const state = word(status.state, "RUN_STATE_") || "unknown";
  setText(byId("run-name"), status.runName || "Atoll");
  setText(byId("state"), state);
  setClass(byId("state"), `pill ${STATE_LOOKS[state] || "wait"}`);
  document.title = `${status.runName || "Atoll"}: ${state}`;
  const share = num(status.totalTokens) > 0 ? num(status.committedTokens) / num(status.totalTokens) : 0;
  byId("progress-fill").style.width = `${100 * Math.min(1, share)}%`;
  byId("progress").setAttribute("aria-valuenow", Math.round(share * 100));
  const over = ["finished", "stopped", "paused"].includes(state);
  const unknown = num(status.liveTrainers) > 0 ? "time left not known yet" : "no worker trains";
  const left = over ? null : num(status.etaSeconds) > 0 ? `about ${duration(status.etaSeconds)} left` : unknown;
  setText(byId("position"), [
    `version ${headVersion(status)}`,
    ...progressOf(status),
    `learning rate ${num(status.learningRate).toExponential(2)}`,
    ageText(status, over && state !== "paused"),
    left,
  ].filter(Boolean).join(" · "));
  setText(byId("foot"), `Atoll ${status.softwareVersion || ""} · run ${status.runId || ""} · up for ${duration(status.uptimeS)} · ${status.dataDirectory || ""}`);
}

// The age includes downtime.
function ageText(status, ended) {
  if (!num(status.runSeconds)) return `coordinator up for ${duration(status.uptimeS)}`;
  const age = duration(status.runSeconds);
  return ended ? `ended ${age} after its creation` : `created ${age} ago`;
}

export const headVersion = (status) => Math.max(0, ...(status.fragments || []).map((f) => num(f.version)));

function waitText(wait, oneFragment) {
  let text = wait.what || "";
  if (oneFragment) text = text.replace(/^fragment 0: /, "");
  if (!/wait/.test(text) && !/^fragment /.test(text)) text = `waiting for ${text}`;
  const unnamed = (wait.from || []).filter((name) => !text.includes(name));
  if (unnamed.length) text += `: ${unnamed.join(", ")}`;
  if (num(wait.sinceS) >= 1) text += `, since ${duration(wait.sinceS)}`;
  if (num(wait.endsInS) > 0) text += `, at most ${duration(wait.endsInS)} more`;
  return text;
}

/** What is wrong, and what the run waits for. */
export function showNotices(status) {
  const one = (status.fragments || []).length <= 1;
  const waits = status.waiting || [];
  const state = word(status.state, "RUN_STATE_");
  const notices = [];
  if (status.storageError) notices.push({ key: "storage", looks: "bad", text: `Storage: ${status.storageError}` });
  const saidBelow = waits.some((wait) => (wait.what || "").endsWith(status.stateReason));
  if (status.stateReason && !saidBelow && state !== "training") {
    notices.push({ key: "reason", looks: STATE_LOOKS[state] || "wait", text: status.stateReason });
  }
  waits.forEach((wait, i) => notices.push({ key: `wait ${i}`, looks: state === "training" ? "calm" : "wait", text: waitText(wait, one) }));
  const refusedJoins = status.refusedJoins || [];
  refusedJoins.slice(0, SHOWN_REFUSALS).forEach((refused, i) => {
    const who = refused.worker ? `worker '${refused.worker}'` : "a worker without a valid name";
    const from = refused.address ? ` (${refused.address})` : "";
    notices.push({ key: `refused ${i}`, looks: "bad",
      text: `rejected: ${who}${from}, ${counted(refused.attempts, "time")} since ${duration(refused.sinceS)}: ${refused.message}` });
  });
  const more = refusedJoins.length - SHOWN_REFUSALS;
  if (more > 0) notices.push({ key: "refused more", looks: "bad", text: `And ${more} more ${more === 1 ? "worker is" : "workers are"} rejected` });
  keyed(byId("notices"), notices.slice(0, 12), (n) => n.key, () => el("p"), (element, notice) => {
    setClass(element, `notice ${notice.looks}`);
    setText(element, notice.text.charAt(0).toUpperCase() + notice.text.slice(1));
  });
}

/** An evaluation may be any number, 0 too. Only the loss of a language model has a perplexity. */
export function validationTile(status) {
  const last = status.evaluations?.at(-1);
  if (!last) return ["Validation loss", "–", "not evaluated yet"];
  const model = status.config?.model;
  const said = model?.external || model?.torchscript ? [] : [`perplexity ${Math.exp(num(last.loss)).toPrecision(3)}`];
  if (status.firstEvaluation) said.push(`from ${knownLoss(status.firstEvaluation.loss)}`);
  return ["Validation loss", knownLoss(last.loss), said.join(", ")];
}

export function showTiles(status, metrics) {
  const moved = num(metrics.pushBytes) + num(metrics.pullBytes);
  const round = status.rounds?.at(-1);
  const tiles = [
    validationTile(status),
    ["Training loss", loss(metrics.trainLoss), round ? `mean of the round that made version ${num(round.version)}` : "not known yet"],
    // The speed is unknown until this coordinator has timed one whole round.
    ["Speed", num(metrics.tokensPerSecond) || !num(metrics.liveTrainers) ? `${count(metrics.tokensPerSecond)} tok/s` : "–", `${num(metrics.liveTrainers)} ${num(metrics.liveTrainers) === 1 ? "worker trains" : "workers train"}`],
    ["Round", num(metrics.roundSecondsMean) ? duration(metrics.roundSecondsMean) : "–", `including ${duration(metrics.commitSecondsMean)} to commit, on average`],
    ["Computing", num(metrics.computeUtilisation) ? percent(num(metrics.computeUtilisation)) : "–", "of the workers' time"],
    ["Traffic", num(metrics.communicationReduction) ? `${num(metrics.communicationReduction) < 10 ? num(metrics.communicationReduction).toFixed(1) : Math.round(num(metrics.communicationReduction))}× less` : "–", `${bytes(moved)} moved so far`],
  ];
  keyed(byId("tiles"), tiles, (tile) => tile[0], (tile) => el("div", { class: "tile" }, el("span", {}, tile[0]), el("b"), el("small")), (element, tile) => {
    setText(element.children[1], tile[1]);
    setText(element.children[2], tile[2]);
  });
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(([name, looks]) => el("span", {}, el("i", { class: looks }), name)));
}

const MARKS = {
  WORKER_JOINED: ["join", "joined"], WORKER_RETURNED: ["join", "returned"], WORKER_LEFT: ["leave", "left"],
  WORKER_LOST: ["leave", "lost"], WORKER_BANNED: ["leave", "banned"], RUN_PAUSED: ["other", "paused"],
  RUN_RESUMED: ["other", "resumed"], COORDINATOR_STARTED: ["other", "coordinator started"],
};

/** The time of day for an axis: with seconds where minutes would repeat. */
export const clockOver = (times) => (times.length && times.at(-1) - times[0] > 600 ? (x) => clock(x).replace(/:\d\d$/, "") : clock);

/** Tokens that were committed at a moment, by the straight line between the curve's points; a restore takes some back. */
function tokensAt(curve, at) {
  const known = curve.unixSeconds.map((time, i) => ({ version: curve.version[i], time, tokens: curve.tokens[i] }))
    .concat(curve.restores.map((restore) => ({ ...restore, time: restore.unixSeconds }))).sort((a, b) => a.version - b.version);
  let i = known.findIndex((point) => point.time >= at);
  if (i < 0) i = known.length - 1;
  if (i <= 0) return 0;
  const [from, to] = [known[i - 1], known[i]];
  const share = Math.min(1, Math.max(0, (at - from.time) / Math.max(1e-9, to.time - from.time)));
  if (to.tokens < from.tokens) return share < 1 ? from.tokens : to.tokens;
  return from.tokens + share * (to.tokens - from.tokens);
}

/**
 * The points of a column: those that led to the head, a line for each epoch, and those that a restore abandoned, which begin at the
 * point they have in common with the others.
 */
export function branches(columns, axis, losses = columns.loss) {
  const live = [];
  const abandoned = [];
  let epoch = null;
  columns[axis].forEach((x, i) => {
    const point = [x, losses[i] ?? NaN];
    if (axis === "unixSeconds" && !(x > 0)) return;
    const same = epoch === columns.epoch[i];
    epoch = columns.epoch[i];
    if (!columns.abandoned[i]) {
      live.push(same ? point : [...point, true]);
      return;
    }
    const forks = i > 0 && same && !columns.abandoned[i - 1];
    if (forks) abandoned.push([columns[axis][i - 1], losses[i - 1] ?? NaN, true]);
    abandoned.push(same ? point : [...point, true]);
  });
  return { live, abandoned };
}

/** Without the points that are not known; the first after one that began a line begins it. */
function lineOf(points) {
  let begins = false;
  return points.flatMap(([x, y, first]) => {
    begins ||= Boolean(first);
    if (!Number.isFinite(y)) return [];
    const point = begins ? [x, y, true] : [x, y];
    begins = false;
    return [point];
  });
}

export class LossChart {
  constructor() {
    this.byTime = false;
    this.byWorker = false;
    this.compared = new ComparedRuns(() => this.draw());
    this.chart = new Chart(byId("loss"), { label: "Loss", robust: true, empty: "No round has closed yet", formatTick: (y) => String(Number(Math.abs(y) < 5e-4 ? y.toPrecision(3) : y.toFixed(3))), formatY: knownLoss });
    const choose = (byTime) => () => { this.byTime = byTime; this.draw(); };
    byId("by-tokens").addEventListener("click", choose(false));
    byId("by-time").addEventListener("click", choose(true));
    byId("by-worker").addEventListener("click", () => { this.byWorker = !this.byWorker; this.draw(); });
  }

  show(curve) {
    if (curve === this.curve) return;
    this.curve = curve;
    this.draw();
  }

  draw() {
    byId("by-tokens").setAttribute("aria-pressed", String(!this.byTime));
    byId("by-time").setAttribute("aria-pressed", String(this.byTime));
    byId("by-worker").setAttribute("aria-pressed", String(this.byWorker));
    const { curve } = this;
    if (!curve) return;
    const axis = this.byTime ? "unixSeconds" : "tokens";
    const training = branches(curve, axis);
    const validation = branches(curve.validation, axis);
    const restored = curve.restores.length > 0;
    const series = [{ name: "training, mean", colour: "c-s0", head: restored, points: training.live }];
    if (curve.validation.loss.length) series.push({ name: "validation", colour: "c-s1", dots: true, points: validation.live });
    if (this.byWorker) {
      curve.workers.forEach((worker, i) => series.push({
        name: worker.name, colour: COLOURS[i % COLOURS.length], thin: true, points: lineOf(branches(curve, axis, worker.loss).live),
      }));
    }
    series.push(...this.compared.series(this.byTime, curve.unixSeconds[0] ?? 0));
    const marks = curve.milestones.filter((event) => event.kind in MARKS).map((event) => {
      const [kind, verb] = MARKS[event.kind];
      const at = seconds(event.unixNanos);
      return { x: this.byTime ? at : tokensAt(curve, at), kind, text: `${clock(at)}: ${event.worker ? `${event.worker} ` : ""}${verb}` };
    });
    for (const restore of curve.restores) {
      marks.push({ x: restore[axis], kind: "restored", label: "restored", text: `${clock(restore.unixSeconds)}: version ${restore.version}, ${restore.reason}` });
    }
    const entries = series.slice(0, 18).map((s) => [s.name, s.colour]);
    if (training.abandoned.length) {
      series.push({ name: "abandoned", colour: "c-gone", thin: true, points: training.abandoned });
      if (validation.abandoned.length) series.push({ name: "validation, abandoned", colour: "c-gone", thin: true, dots: true, points: validation.abandoned });
      entries.push(["abandoned by a restore", "c-gone"]);
    }
    for (const [kind, name] of [["join", "joined"], ["leave", "left or lost"], ["other", "run or coordinator"], ["restored", "restored"]]) {
      if (marks.some((mark) => mark.kind === kind)) entries.push([name, `mark m-${kind}`]);
    }
    if (curve.stride > 1) entries.push([`one point per ${curve.stride} rounds`, ""]);
    legend(byId("loss-legend"), entries);
    this.chart.show({ series, marks }, this.byTime
      ? { formatX: clockOver(curve.unixSeconds), formatTip: clock, timeSteps: TIME_STEPS }
      : { formatX: count, formatTip: (x) => `${count(x)} tokens`, timeSteps: null });
  }
}

export class TrafficChart {
  constructor() {
    const rate = (y) => `${bytes(y)}/s`;
    this.chart = new Chart(byId("traffic"), {
      label: "Bandwidth", empty: "Measuring: the first values appear in a few seconds", formatY: rate, fromZero: true, binary: true, left: 78,
      formatTip: clock, timeSteps: TIME_STEPS,
    });
    legend(byId("traffic-legend"), [["from workers (push)", "c-s0"], ["to workers (pull)", "c-s1"]]);
  }

  show(traffic) {
    if (traffic === this.traffic) return;
    this.traffic = traffic;
    const at = traffic.unixSeconds;
    const rates = (column) => at.slice(1).map((time, i) => [time, Math.max(0, column[i + 1] - column[i]) / Math.max(0.001, time - at[i])]);
    const push = rates(traffic.pushBytes);
    const pull = rates(traffic.pullBytes);
    if (push.length) setText(byId("traffic-now"), `now ${bytes(push.at(-1)[1])}/s up, ${bytes(pull.at(-1)[1])}/s down`);
    this.chart.show({ series: [{ name: "push", colour: "c-s0", points: push }, { name: "pull", colour: "c-s1", points: pull }], marks: [] },
      { formatX: clockOver(at) });
  }
}

/** What was moved beside what data-parallel training would have moved. */
export function showSaved(metrics) {
  const moved = num(metrics.pushBytes) + num(metrics.pullBytes);
  const plain = num(metrics.dataParallelBytes);
  const place = byId("saved");
  if (!place.firstChild) {
    place.append(el("p"), el("div", { class: "bar" }, el("div")), el("p", { class: "muted" }, "The bar shows the bytes moved, compared with float32 gradients at every inner step."));
  }
  place.hidden = plain === 0 || moved === 0;
  setText(place.children[0], `${bytes(num(metrics.pushBytes))} up and ${bytes(num(metrics.pullBytes))} down, instead of ${bytes(plain)}: ${bytes(Math.max(0, plain - moved))} saved.`);
  place.children[1].firstChild.style.width = `${Math.min(100, (100 * moved) / Math.max(1, plain))}%`;
}
