// Operator actions: the token and the buttons.
import { act, hasToken, look, setToken } from "./client.js";
import { byId, el, setClass, setText } from "./dom.js";
import { bytes, clock, counted, num, seconds } from "./format.js";

/** Asks; true when it was confirmed. */
function confirmed(title, text, yes) {
  const dialog = byId("confirm-dialog");
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  setText(byId("confirm-yes"), yes);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Focuses the first of these elements that is shown and enabled. */
function focusFirst(ids) {
  for (const id of ids) {
    const element = id && byId(id);
    if (element && !element.disabled && element.offsetParent !== null) { element.focus(); return; }
  }
}

function outcome(text, looks) {
  setText(byId("outcome"), text);
  setClass(byId("outcome"), `outcome ${looks}`);
}

export class Operator {
  /** `changed` is called when who we are, or the run, may be another. */
  constructor(changed) {
    this.changed = changed;
    this.session = null;
    this.paused = false;
    for (const id of ["operate", "unlock", "act-unlock"]) byId(id).addEventListener("click", () => this.ask());
    byId("token-cancel").addEventListener("click", () => byId("token-dialog").close());
    byId("token-form").addEventListener("submit", (event) => { event.preventDefault(); this.take(); });
    byId("forget").addEventListener("click", () => { setToken(""); outcome("This page has forgotten the token.", ""); this.refresh(); });
    byId("pause").addEventListener("click", () => (this.paused ? this.resume() : this.pause()));
    byId("close-round").addEventListener("click", () => this.closeRound());
    byId("add-form").addEventListener("submit", (event) => { event.preventDefault(); this.add(); });
    byId("checkpoint-form").addEventListener("submit", (event) => { event.preventDefault(); this.checkpoint(); });
  }

  get mayAct() { return Boolean(this.session?.mayAct); }

  ask() {
    if (this.mayAct) { byId("operations").scrollIntoView({ block: "center" }); focusFirst(["pause", "checkpoint-name"]); return; }
    this.askedFrom = document.activeElement?.id;
    setText(byId("token-hint"), this.session?.tokenHint || "");
    setText(byId("token-problem"), "");
    byId("token-dialog").showModal();
  }

  async take() {
    setToken(byId("token").value);
    try {
      this.session = await look("/api/v1/session");
      if (!this.session.verified) throw new Error("This coordinator does not use tokens.");
      byId("token").value = "";
      byId("token-dialog").close();
      outcome("", "");
    } catch (error) {
      setToken("");
      setText(byId("token-problem"), error.message);
      byId("token").select();
    }
    await this.refresh();
    if (this.session && !byId("token-dialog").open) this.keepFocus();
  }

  /** The button that asked may be hidden by now: the keyboard goes on at what took its place. */
  keepFocus() {
    if (this.askedFrom === "unlock") byId("content").focus();
    else if (this.askedFrom === "act-unlock" && this.mayAct) focusFirst(["pause", "checkpoint-name"]);
    else focusFirst([this.askedFrom, "operate"]);
  }

  /** Asks the coordinator who we are. */
  async refresh() {
    const focused = document.activeElement?.id;
    try {
      this.session = await look("/api/v1/session");
    } catch (error) {
      this.session = null;
      if (error.status === 401 && hasToken()) {
        setToken("");
        outcome("The token is no longer valid.", "problem");
      }
    }
    this.show();
    if (focused === "forget") focusFirst(["forget", "act-unlock"]);
    this.changed();
  }

  show() {
    const open = this.mayAct;
    byId("act-open").hidden = !open;
    byId("act-locked").hidden = open;
    setText(byId("who"), open ? `as ${this.session.name || "admin"}` : "");
    setText(byId("operate"), open ? `As ${this.session.name || "admin"}` : "Operate");
    const why = this.session?.verified
      ? "This token only allows reading. To pause the run, drain workers or create checkpoints, you need an admin token."
      : `To pause the run, drain or add workers, or create checkpoints, you need an admin token. ${this.session?.tokenHint || ""}`;
    setText(byId("act-why"), why);
  }

  showRun(status, launcher) {
    this.paused = status.state === "RUN_STATE_PAUSED";
    const over = ["RUN_STATE_FINISHED", "RUN_STATE_STOPPED"].includes(status.state);
    setText(byId("pause"), this.paused ? "Resume" : "Pause");
    byId("pause").disabled = over;
    byId("close-round").disabled = over || this.paused;
    const kind = launcher?.kind || "none";
    byId("add-form").hidden = kind === "none";
    setText(byId("launcher"), kind === "none" ? "No launcher: start workers by hand."
      : `${num(launcher.target)} wanted, ${num(launcher.running)} running by the ${kind} launcher${(launcher.drained || []).length ? `; drained: ${launcher.drained.join(", ")}` : ""}${launcher.error ? `; ${launcher.error}` : ""}`);
  }

  showCheckpoints(reply) {
    const newest = (reply.checkpoints || []).slice().sort((a, b) => num(b.createdUnixNanos) - num(a.createdUnixNanos)).slice(0, 3);
    byId("checkpoints").replaceChildren(...newest.map((c) => el("li", {}, `${c.name}, version ${(c.versions || [0])[0]}, ${clock(seconds(c.createdUnixNanos))}, ${bytes(c.bytes)}${c.damage ? `, damaged: ${c.damage}` : ""}`)));
  }

  async run(name, body, say) {
    outcome("Asking …", "");
    const buttons = [...byId("act-open").querySelectorAll("button")];
    const focused = document.activeElement; // a button that is disabled loses the focus
    buttons.forEach((button) => { button.disabled = true; });
    try {
      outcome(say(await act(name, body)), "done");
    } catch (error) {
      outcome(error.message, "problem");
      if (error.status === 401) await this.refresh();
    }
    buttons.forEach((button) => { button.disabled = false; });
    if (document.activeElement === document.body) focused?.focus();
    this.changed();
  }

  async pause() {
    if (!await confirmed("Pause the run?", "Workers stop after the inner step in progress and wait. Contributions in flight are kept and count when the run resumes.", "Pause")) return;
    await this.run("control-run", { action: "PAUSE", reason: "" }, (reply) => reply.message);
  }

  resume() { return this.run("control-run", { action: "RESUME" }, (reply) => reply.message); }

  async closeRound() {
    if (!await confirmed("Close the round now?", "The contributions received so far are merged. Workers that are still training count as late, or not at all.", "Close the round")) return;
    await this.run("control-run", { action: "CLOSE_ROUND" }, (reply) => reply.message);
  }

  add() {
    const wanted = Math.floor(Number(byId("add-count").value));
    return this.run("scale-workers", { add: wanted }, (reply) => `From ${num(reply.before)} to ${counted(reply.target, "worker")}.`);
  }

  checkpoint() {
    return this.run("create-checkpoint", { name: byId("checkpoint-name").value.trim() }, (reply) => {
      byId("checkpoint-name").value = "";
      return `Created ${reply.checkpoint.name}: ${bytes(reply.checkpoint.bytes)}.`;
    });
  }

  /** Drain or restart one worker. */
  async worker(name, action) {
    const restart = action === "RESTART";
    const text = restart ? "The worker finishes its round, pushes it, and starts again under the same name." : "The worker finishes its round, pushes it, and leaves. It does not return by itself.";
    if (!await confirmed(`${restart ? "Restart" : "Drain"} ${name}?`, text, restart ? "Restart" : "Drain")) return;
    await this.run("control-worker", { worker: name, action }, (reply) => reply.message);
  }
}
