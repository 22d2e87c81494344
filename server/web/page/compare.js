// Other runs beside the live one: files of `atollctl metrics export` that the user chooses. Nothing of them leaves the browser.
import { byId, setText } from "./dom.js";
import { counted } from "./format.js";

const HEADER = "unix_time,name,worker,version,committed_tokens,value";
const NAMES = { "validation/loss": "validation", "train/loss": "training" };
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_RUNS = 6;
const COLOURS = ["c-s2", "c-s3", "c-s4", "c-s5", "c-s6", "c-s7"];

/** The fields of one line of CSV; null for a quote that is not closed. */
function splitCsv(line) {
  const fields = [""];
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    if (quoted && line[i] === '"' && line[i + 1] === '"') fields[fields.length - 1] += line[i++];
    else if (line[i] === '"') quoted = !quoted;
    else if (line[i] === "," && !quoted) fields.push("");
    else fields[fields.length - 1] += line[i];
  }
  return quoted ? null : fields;
}

function pointOfCsv(line) {
  const fields = splitCsv(line);
  if (!fields || fields.length !== 6) return null;
  return { time: Number(fields[0]), name: fields[1], version: Number(fields[3]), tokens: Number(fields[4]), value: Number(fields[5]) };
}

function pointOfJson(line) {
  let json;
  try { json = JSON.parse(line); } catch { return null; }
  if (json === null || typeof json !== "object" || typeof json.name !== "string") return null;
  return { time: Number(json.unix_time), name: json.name, version: Number(json.version), tokens: Number(json.committed_tokens), value: json.value ?? NaN };
}

/** Without the points that a later restore went back behind. */
function kept(points, rounds) {
  const versions = [...rounds.keys()].sort((a, b) => b - a);
  const fewest = new Map();
  let least = Infinity;
  for (const version of versions) {
    fewest.set(version, least);
    least = Math.min(least, rounds.get(version));
  }
  return points.filter((point) => point.tokens <= (point.version === 0 ? Infinity : fewest.get(point.version) ?? Infinity))
    .sort((a, b) => a.version - b.version);
}

/** {validation, training}: points {tokens, seconds, loss} of the text of a file, seconds since the run's first value. Throws an Error that says what is wrong. */
export function parseRun(text) {
  const found = { validation: [], training: [] };
  const rounds = new Map();
  let first = Infinity;
  let read = null;
  let number = 0;
  for (const line of text.split(/\r?\n/)) {
    number++;
    if (line === "") continue;
    if (read === null) {
      read = line === HEADER ? pointOfCsv : pointOfJson;
      if (read === pointOfJson && !line.startsWith("{")) {
        throw new Error("this is no file of metrics export: it begins neither with '{' nor with the heading of the CSV format");
      }
      if (line === HEADER) continue;
    }
    const point = read(line);
    if (!point || !Number.isFinite(point.time) || !Number.isFinite(point.version) || !Number.isFinite(point.tokens)) {
      throw new Error(`line ${number} is no metric point`);
    }
    first = Math.min(first, point.time);
    if (/^(round|train)\//.test(point.name)) rounds.set(point.version, point.tokens);
    if (Object.hasOwn(NAMES, point.name)) found[NAMES[point.name]].push(point);
  }
  for (const name of Object.keys(found)) {
    found[name] = kept(found[name], rounds).map((point) => ({ tokens: point.tokens, seconds: point.time - first, loss: Number(point.value) }));
  }
  if (!found.validation.length && !found.training.length) throw new Error("it has no validation loss and no training loss");
  return found;
}

/** The names of the files without their endings, where that leaves them different. */
function shownNames(files) {
  const short = files.map((file) => file.replace(/\.(jsonl|json|csv)$/, ""));
  return files.map((file, i) => (short.filter((one) => one === short[i]).length > 1 ? file : short[i]));
}

/** The runs that the user has chosen. `changed` is called when there are others. */
export class ComparedRuns {
  constructor(changed) {
    this.changed = changed;
    this.runs = [];
    this.input = byId("compare-files");
    byId("compare").addEventListener("click", () => this.input.click());
    this.input.addEventListener("change", () => this.take([...this.input.files]));
    byId("compare-none").addEventListener("click", () => {
      this.runs = [];
      this.say("");
      byId("compare").focus();
      this.changed();
    });
  }

  say(text, looks = "muted") {
    setText(byId("compare-said"), text);
    byId("compare-said").className = looks;
    byId("compare-none").hidden = this.runs.length === 0;
  }

  /** The runs that stay when a file of this name is added. Throws an Error without room for it. */
  besides(file) {
    const others = this.runs.filter((run) => run.file !== file);
    if (others.length === MOST_RUNS) throw new Error(`at most ${MOST_RUNS} runs fit beside the live one`);
    return others;
  }

  async take(files) {
    const problems = [];
    for (const file of files) {
      try {
        if (file.size > MOST_BYTES) throw new Error("it is larger than 256 MiB");
        this.besides(file.name); // before a large file is read
        const run = { file: file.name, ...parseRun(await file.text()) };
        this.runs = this.besides(file.name).concat(run);
      } catch (problem) {
        problems.push(`${file.name}: ${problem.message}`);
      }
    }
    this.input.value = ""; // so that the same file can be chosen again
    this.say(problems.length ? problems.join("; ") : `compared with ${counted(this.runs.length, "run")}`, problems.length ? "problem" : "muted");
    this.changed();
  }

  /** Series for the loss chart. By time, each run begins where the live one does. */
  series(byTime, begin) {
    const points = (list) => list.map((point) => [byTime ? begin + point.seconds : point.tokens, point.loss]);
    const names = shownNames(this.runs.map((run) => run.file));
    return this.runs.flatMap((run, i) => {
      const colour = COLOURS[i % COLOURS.length];
      const list = [];
      if (run.training.length) list.push({ name: `${names[i]}, training`, colour, thin: true, points: points(run.training) });
      if (run.validation.length) list.push({ name: `${names[i]}, validation`, colour, dots: true, points: points(run.validation) });
      return list;
    });
  }
}
