// The built-in page. It calls the coordinator every two seconds while the page is visible.
import { hasToken, look } from "./client.js";
import { byId, setClass, setText } from "./dom.js";
import { duration } from "./format.js";
import { Operator } from "./operate.js";
import { headVersion, LossChart, showNotices, showSaved, showState, showTiles, TrafficChart } from "./overview.js";
import { EventList, showRounds, showWorkers } from "./tables.js";
import { TaskCard } from "./tasks.js";

const PERIOD_MS = 2000;
const ROUNDS_AT_FIRST = 12;

const lossChart = new LossChart();
const taskCard = new TaskCard();
const trafficChart = new TrafficChart();
const events = new EventList();
let roundsShown = ROUNDS_AT_FIRST;
let timer = null;
let busy = false;
let lastAnswer = 0;
let failures = 0;
let lastUptime = 0;

const operator = new Operator(() => soon(0));

function soon(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(tick, milliseconds);
}

function showLink(problem) {
  if (!problem) {
    setText(byId("link"), "live");
    setClass(byId("link"), "link live");
    return;
  }
  const since = lastAnswer ? ` since ${duration((Date.now() - lastAnswer) / 1000)}` : "";
  setText(byId("link"), problem.status === 0 ? `no answer${since}; retrying` : problem.message);
  setClass(byId("link"), "link lost");
}

function showLocked(problem) {
  const locked = problem !== null;
  byId("locked").hidden = !locked;
  byId("run").hidden = locked;
  if (locked) setText(byId("locked-why"), problem.message);
}

async function refresh() {
  const status = await look("/api/v1/status?history=1");
  const all = byId("workers-gone").checked ? "?all=1" : "";
  const wanted = Math.min(1000, roundsShown + 1);
  const version = headVersion(status);
  const [workers, metrics, curve, traffic, launcher, rounds, news] = await Promise.all([
    look(`/api/v1/workers${all}`), look("/api/v1/metrics"), look("/api/v1/curve"), look("/api/v1/traffic"),
    look("/api/v1/launcher"),
    version > 0 ? look(`/api/v1/rounds?limit=${wanted}`) : { rounds: [] },
    look(`/api/v1/events?after=${events.last}&limit=200`),
  ]);
  if (status.uptimeS < lastUptime) events.clear();
  lastUptime = status.uptimeS;
  showLocked(null);
  showState(status);
  showNotices(status);
  showTiles(status, metrics);
  showSaved(metrics);
  lossChart.show(curve);
  taskCard.show(curve);
  trafficChart.show(traffic);
  showWorkers(workers, operator.mayAct, (name, action) => operator.worker(name, action));
  showRounds(rounds, status, roundsShown);
  events.add(news.events);
  operator.showRun(status, launcher);
  if (operator.mayAct) operator.showCheckpoints(await look("/api/v1/checkpoints"));
}

async function tick() {
  if (busy) return;
  busy = true;
  try {
    if (operator.session === null) {
      operator.session = await look("/api/v1/session").catch(() => null);
      operator.show();
    }
    await refresh();
    failures = 0;
    lastAnswer = Date.now();
    showLink(null);
  } catch (problem) {
    failures++;
    if (problem.status === 401 || problem.status === 403) {
      if (problem.status === 401 && hasToken()) operator.refresh();
      showLocked(problem);
      setText(byId("link"), "locked");
      setClass(byId("link"), "link");
    } else if (problem.status === undefined) {
      throw problem; // ours
    } else {
      showLink(problem);
    }
  } finally {
    busy = false;
    if (!document.hidden) soon(Math.min(15000, PERIOD_MS * 2 ** Math.min(3, failures)));
  }
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : soon(0)));
byId("workers-gone").addEventListener("change", () => soon(0));
byId("rounds-more").addEventListener("click", () => { roundsShown = Math.min(1000, roundsShown + 50); soon(0); });
tick();
