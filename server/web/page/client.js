// Calls the coordinator at intervals and sends the token. The token stays in this tab; it is sent in a header that pages of other
// sites cannot set.

const KEY = "atoll-token";
let token = sessionStorage.getItem(KEY) || "";

export const hasToken = () => token !== "";

export function setToken(value) {
  token = value.trim();
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  answers.clear();
}

/** What the coordinator answered that is no success. status 0: nothing came. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const answers = new Map(); // by path: etag and value of the last answer

async function send(path, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), options.patience || 10000);
  try {
    const reply = await fetch(path, {
      ...options, headers, cache: "no-store", credentials: "omit", redirect: "error", signal: giveUp.signal,
    });
    return { reply, text: reply.status === 304 ? "" : await reply.text() };
  } catch (error) {
    throw new Problem(0, "the coordinator does not answer");
  } finally {
    clearTimeout(timer);
  }
}

// The coordinator's messages are for programs and name command-line flags, so the page has its own texts.
const LOCKED = "Only holders of a token can see this run. Ask its operator for a token.";
const UNKNOWN_TOKEN = "This token is not known, was revoked, or has expired. Ask the run's operator for another one.";

function problemOf(reply, text) {
  if (reply.status === 401) return new Problem(401, token ? UNKNOWN_TOKEN : LOCKED);
  try {
    return new Problem(reply.status, JSON.parse(text).error.message);
  } catch {
    return new Problem(reply.status, `the coordinator answered ${reply.status}`);
  }
}

/** The JSON at this path; the very object of the last time when nothing has changed. */
export async function look(path) {
  const known = answers.get(path);
  const { reply, text } = await send(path, { headers: known ? { "If-None-Match": known.etag } : {} });
  if (reply.status === 304 && known) return known.value;
  if (!reply.ok) throw problemOf(reply, text);
  const value = JSON.parse(text);
  const etag = reply.headers.get("ETag");
  if (etag && !path.includes("after=")) answers.set(path, { etag, value }); // such paths are requested only once
  return value;
}

/** One action; it may take minutes. */
export async function act(name, body) {
  const { reply, text } = await send(`/api/v1/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Atoll-Action": "1" },
    body: JSON.stringify(body),
    patience: 300000,
  });
  if (!reply.ok) throw problemOf(reply, text);
  return JSON.parse(text);
}
