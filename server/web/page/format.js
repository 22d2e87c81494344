// Formats numbers and names. 64-bit integers arrive as strings; fields with their default value are absent.

export const num = (value) => (value === undefined || value === null ? 0 : Number(value));

function threeDigits(value, decimals) {
  if (value >= 99.95 || decimals === 0) return value.toFixed(0);
  return value.toFixed(value >= 9.995 || decimals === 1 ? 1 : 2);
}

export function count(value) {
  const suffixes = ["", "k", "M", "G", "T", "P"];
  let i = 0;
  let v = num(value);
  if (!Number.isFinite(v)) return "–";
  while (v >= 999.5 && i + 1 < suffixes.length) { v /= 1000; i++; }
  return threeDigits(v, i === 0 && Number.isInteger(v) ? 0 : 2) + suffixes[i];
}

/** "1 worker", "2 workers". */
export const counted = (value, noun) => `${num(value)} ${noun}${num(value) === 1 ? "" : "s"}`;

export function bytes(value) {
  const suffixes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  let v = num(value);
  if (!Number.isFinite(v)) return "–";
  while (v >= 1023.5 && i + 1 < suffixes.length) { v /= 1024; i++; }
  return `${i === 0 ? Math.round(v) : threeDigits(v, 1)} ${suffixes[i]}`;
}

export function duration(seconds) {
  const s = num(seconds);
  if (!Number.isFinite(s)) return "–";
  if (s > 0 && s < 0.9995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
  return `${Math.floor(whole / 86400)} d ${two(Math.floor(whole / 3600) % 24)} h`;
}

/** A loss that is known. Language models have losses of the size of 1; those of other models may be huge or tiny. */
export function knownLoss(value) {
  const size = Math.abs(num(value));
  return size === 0 || (size >= 5e-4 && size < 99999.5) ? num(value).toFixed(3) : num(value).toPrecision(3);
}

export const loss = (value) => (Number.isFinite(num(value)) && num(value) !== 0 ? knownLoss(value) : "–");

export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

export const seconds = (nanos) => num(nanos) / 1e9;

/** Wall clock of this browser: 14:03:07, with the day when it is not today's. */
export function clock(unixSeconds) {
  const date = new Date(unixSeconds * 1000);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/** Turns the coordinator's words about a waiting worker into "waits for w1" or "waits: paused by ann". */
export const waits = (text) => (text.startsWith("waiting for ") ? text.replace("waiting for", "waits for") : `waits: ${text}`);

/** "RUN_STATE_TRAINING", "RUN_STATE_" -> "training" */
export const word = (value, prefix) => (value || "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
