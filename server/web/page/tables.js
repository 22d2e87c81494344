// Workers, rounds, events.
import { byId, el, keyed, setClass, setText } from "./dom.js";
import { bytes, clock, count, duration, loss, num, seconds, waits, word } from "./format.js";

const WORKER_LOOKS = { active: "good", lost: "bad", left: "calm" };

function workerRow(onAct) {
  return (worker) => {
    const act = (action) => el("button", { type: "button", class: "small", on: { click: () => onAct(worker.name, action) } }, action === "DRAIN" ? "Drain" : "Restart");
    return el("tr", {},
      el("td", {}, el("span", { class: "name" }), el("small")),
      el("td", { class: "end" }, el("span")),
      el("td", { class: "wide" }, el("span"), el("span", { class: "step" }, el("span")), el("small")),
      el("td", { class: "num", "data-label": "loss" }), el("td", { class: "num", "data-label": "tokens/s" }),
      el("td", { class: "num", "data-label": "counted" }),
      el("td", { class: "num", "data-label": "up" }), el("td", { class: "num", "data-label": "down" }),
      el("td", { class: "num", "data-label": "heartbeat" }),
      el("td", { class: "acts wide" }, act("DRAIN"), act("RESTART")));
  };
}

function hardware(capabilities) {
  if (!capabilities) return "";
  const memory = num(capabilities.memoryBytes);
  const own = num(capabilities.deviceMemoryBytes);
  const ranks = num(capabilities.ranks);
  return [ranks > 1 ? `${ranks} ranks` : null, capabilities.deviceName, own ? `${bytes(own)} of its own` : null, `${num(capabilities.threads)} threads`,
    memory ? `${bytes(memory)} of main memory` : null].filter(Boolean).join(", ");
}

function fillWorker(row, worker, mayAct) {
  const progress = worker.progress || {};
  const active = worker.state === "active";
  const role = word(worker.role, "ROLE_");
  const [name, state, doing, lossCell, speed, counted, up, down, heard, acts] = row.children;
  setText(name.children[0], worker.name || "");
  setText(name.children[1], [role === "trainer" ? null : role, worker.capabilities?.device].filter(Boolean).join(", "));
  name.title = hardware(worker.capabilities);
  const pending = word(worker.pendingCommand, "COMMAND_");
  setText(state.children[0], worker.banned ? "banned" : pending && pending !== "none" ? `told to ${pending}` : worker.state || "");
  setClass(state.children[0], `pill ${worker.banned ? "bad" : pending && pending !== "none" ? "wait" : WORKER_LOOKS[worker.state] || ""}`);
  const phase = word(progress.phase, "WORKER_PHASE_");
  const stepping = active && phase === "training" && num(progress.steps) > 0;
  setText(doing.children[0], !active ? "" : stepping ? `step ${num(progress.step)} of ${num(progress.steps)} on version ${num(progress.baseVersion)}` : phase);
  doing.children[1].hidden = !stepping;
  doing.children[1].firstChild.style.width = `${Math.min(100, (100 * num(progress.step)) / Math.max(1, num(progress.steps)))}%`;
  setText(doing.children[2], !active || !progress.waitingFor ? "" : phase === "evaluating" ? progress.waitingFor : waits(progress.waitingFor));
  setText(lossCell, loss(progress.loss));
  setText(speed, count(progress.tokensPerSecond));
  const peak = num(progress.peakFlopsPerSecond);
  speed.title = active && peak > 0 && num(progress.modelFlopsPerSecond) > 0
    ? `${((100 * num(progress.modelFlopsPerSecond)) / peak).toFixed(0)} % of the fastest matrix product measured on its device`
    : "";
  setText(counted, num(worker.contributionsRefused) ? `${num(worker.contributionsAccepted)} (${num(worker.contributionsRefused)} refused)` : `${num(worker.contributionsAccepted)}`);
  setText(up, bytes(worker.pushBytes));
  setText(down, bytes(worker.pullBytes));
  setText(heard, active ? `${duration(worker.secondsSinceHeartbeat)} ago` : "–");
  acts.hidden = !mayAct || !active || role !== "trainer";
}

export function showWorkers(reply, mayAct, onAct) {
  // Hide observers that left: they were only readers.
  const workers = (reply.workers || []).filter((w) => w.role !== "ROLE_OBSERVER" || w.state === "active");
  const active = workers.filter((w) => w.state === "active").length;
  setText(byId("workers-count"), `${active} here${workers.length > active ? `, ${workers.length - active} gone` : ""}${workers.length ? "; up and down: since the coordinator's start" : ""}`);
  byId("no-workers").hidden = workers.length > 0;
  keyed(byId("workers"), workers, (w) => w.name, workerRow(onAct), (row, worker) => fillWorker(row, worker, mayAct));
}

function chip(contribution) {
  const late = num(contribution.lateVersions);
  const about = `${num(contribution.steps)} steps, loss ${loss(contribution.loss)}, weight ${num(contribution.weight).toFixed(3)}, norm ${num(contribution.norm).toPrecision(3)}`;
  return el("span", { class: late ? "chip late" : "chip", title: about }, late ? `${contribution.worker}, ${late} behind` : contribution.worker);
}

function roundRow(detail) {
  const round = detail.summary || {};
  const who = detail.contributions || [];
  const chips = el("span", { class: "chips" }, ...who.slice(0, 40).map(chip));
  if (who.length > 40) chips.append(`and ${who.length - 40} more`);
  if (who.length === 0) chips.append("nobody");
  const open = num(round.openSeconds);
  const closed = seconds(round.closedUnixNanos);
  return el("tr", {},
    el("td", { class: "num name", "data-label": "version" }, String(num(round.version))),
    el("td", { class: "end" }, el("time", { datetime: new Date(closed * 1000).toISOString() }, clock(closed))),
    el("td", { class: "wide" }, chips),
    el("td", { class: "num", "data-label": "open" }, open ? duration(open) : "–"),
    el("td", { class: "num", "data-label": "commit" }, num(round.commitSeconds) ? duration(round.commitSeconds) : "–"),
    el("td", { class: "num", "data-label": "tokens" }, count(round.tokens)),
    el("td", { class: "num", "data-label": "loss" }, loss(round.trainLoss)),
    el("td", { class: "num", "data-label": "received" }, bytes(round.payloadBytes)),
    el("td", { class: "wide" }, round.closeReason || ""));
}

export function showRounds(reply, status, shown) {
  const rounds = (reply.rounds || []).slice().reverse();
  if (reply !== showRounds.last || shown !== showRounds.shown) {
    keyed(byId("rounds"), rounds.slice(0, shown), (r) => `${num(r.summary?.version)} ${r.summary?.closedUnixNanos}`, roundRow, () => {});
    byId("rounds-more").hidden = rounds.length <= shown;
    showRounds.last = reply;
    showRounds.shown = shown;
  }
  const open = (status.fragments || []).filter((f) => (f.arrived || []).length + (f.missing || []).length > 0)[0];
  const over = ["RUN_STATE_FINISHED", "RUN_STATE_STOPPED"].includes(status.state);
  setText(byId("rounds-open"), !open || over ? "" : `open for ${duration(open.openSeconds)}: ${(open.arrived || []).length} arrived${(open.missing || []).length ? `, awaited: ${open.missing.slice(0, 8).join(", ")}${open.missing.length > 8 ? ", …" : ""}` : ""}`);
}

const GROUPS = {
  workers: ["WORKER_JOINED", "WORKER_LEFT", "WORKER_LOST", "WORKER_RETURNED", "WORKER_LAUNCHED", "WORKER_EXITED", "WORKER_DRAINED", "WORKER_BANNED"],
  rounds: ["ROUND_CLOSED", "EVALUATED", "SEEDED", "RUN_FINISHED"],
  operators: ["ADMIN_ACTION", "CONFIG_CHANGED", "RUN_PAUSED", "RUN_RESUMED", "RUN_STOPPED", "RUN_RESTORED", "CHECKPOINT_CREATED", "CHECKPOINT_DELETED", "COORDINATOR_STARTED"],
  trouble: ["WORKER_LOST", "CONTRIBUTION_REFUSED", "RUN_HELD", "STORAGE_FAILING", "STORAGE_RECOVERED", "REPLICA_DIVERGED", "CHECKPOINT_FAILED", "WORKER_BANNED"],
};
const EVENT_LOOKS = {
  WORKER_JOINED: "good", WORKER_RETURNED: "good", WORKER_LOST: "bad", STORAGE_FAILING: "bad", REPLICA_DIVERGED: "bad",
  CHECKPOINT_FAILED: "bad", WORKER_BANNED: "bad", CONTRIBUTION_REFUSED: "wait", RUN_HELD: "wait", ADMIN_ACTION: "calm",
  RUN_PAUSED: "calm", RUN_RESUMED: "calm", CONFIG_CHANGED: "calm", RUN_RESTORED: "calm", EVALUATED: "good",
};

function eventRow(event) {
  const at = seconds(event.unixNanos);
  const named = event.worker && !(event.message || "").includes(event.worker) ? `${event.worker}: ` : "";
  return el("li", {},
    el("time", { datetime: new Date(at * 1000).toISOString() }, clock(at)),
    el("span", { class: `pill ${EVENT_LOOKS[event.kind] || ""}` }, word(event.kind, "") || "event"),
    el("span", {}, named + (event.message || "")));
}

/** The newest first, in bounded number. */
export class EventList {
  constructor() {
    this.events = [];
    byId("events-kind").addEventListener("change", () => this.draw());
    let width = 0;
    new ResizeObserver(() => {
      if (byId("events").clientWidth !== width) this.fit();
      width = byId("events").clientWidth;
    }).observe(byId("events"));
  }

  get last() { return this.events.length ? this.events.at(-1).sequence : "0"; }

  add(events) {
    if (events.length === 0) return;
    this.events = this.events.concat(events).slice(-400);
    this.draw();
  }

  /** A restarted coordinator may reuse the numbers of events that were lost with power. */
  clear() { this.events = []; }

  draw() {
    const group = byId("events-kind").value;
    const wanted = this.events.filter((event) => !group || GROUPS[group].includes(event.kind));
    keyed(byId("events"), wanted.slice(-150).reverse(), (event) => event.sequence, eventRow, () => {});
    this.fit();
  }

  /** Ends the box after a whole row; the rest is scrolled to. */
  fit() {
    const box = byId("events");
    box.style.maxHeight = "";
    if (box.scrollHeight <= box.clientHeight || box.children.length === 0) return;
    const top = box.children[0].offsetTop;
    const ends = [...box.children].map((row) => row.offsetTop + row.offsetHeight - top).filter((end) => end <= box.clientHeight);
    if (ends.length > 0) box.style.maxHeight = `${ends.at(-1)}px`;
  }
}
