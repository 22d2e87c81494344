#!/usr/bin/env python3
"""A day in the life of a run: every command of atollctl once, with the real programs, and its effect looked at.

A coordinator launches three workers. An operator plans, starts, watches, changes settings, adds and removes workers, evicts,
bans and resyncs one, closes a round that a frozen worker holds up, exports and generates, makes, checks and restores a
checkpoint, hands out and revokes tokens, verifies, and stops the run. After each command the effect is checked where it must
show: in the status, in the list of workers, in files, in processes. The commands are read from --help, so that a new one
must get its place here.

Usage: day_in_the_life.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from command_list import Given
from hand_run import HandRun
from real_run import RealRun, judge, tokenize_foxes

PATIENCE_S = 60
LONG_ROUND_S = 8  # two heartbeats: a third of lease_s each
CONFIG = """run: {name: day, workers: 3, rounds: 100000, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 32, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 8}
inner: {steps: 10, learning_rate: 0.005, warmup_steps: 10, batch: 4}
outer: {optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}
round: {deadline_s: 600, quorum: 1.0, start_workers: 2, lease_s: 12}
evaluation: {every: 0}
checkpoint: {shards: 1, keep_versions: 20, every: 0}
"""
GONE = ("left", "drained")  # states of a worker that was told to leave


class Day:
    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.run = RealRun(folder / "run", programs, CONFIG)
        self.run.admin = self.run.data = "127.0.0.1:1"  # until there is a coordinator
        self.complaints = []
        self.given = Given()

    # What was typed, and what came of it.

    def type(self, *arguments):
        """The output of a command that must succeed."""
        self.note(arguments)
        text = self.run.ctl(*arguments)
        if text is None:
            raise RuntimeError(f"atollctl {' '.join(arguments)}: {self.run.complaint}")
        return text

    def note(self, arguments):
        self.given.note(arguments)

    def check(self, what, fine):
        if not fine:
            self.complaints.append(what)

    def until(self, what, done, seconds=PATIENCE_S):
        self.run.wait_for(done, seconds, what)

    def next_version(self, more=1):
        head = self.run.head()
        self.until(f"version {head + more}", lambda: self.run.head() >= head + more)

    def worker(self, name):
        return (self.run.workers() or {}).get(name, {})

    def active(self, name):
        return self.worker(name).get("state") == "active" and not self.worker(name).get("banned")

    def process(self, name):
        """Its process id, as the launcher shows it; None when it has none."""
        for worker in json.loads(self.run.ctl("launcher", "--json"))["workers"]:
            number = re.search(r"\d+", worker.get("handle", ""))
            if worker["name"] == name and worker["state"] == "running" and number:
                return int(number.group())
        return None

    # The day.

    def before_the_run(self, tokens):
        self.check("config validate", "is valid" in self.type("config", "validate", str(self.run.folder / "run.yaml")))
        self.check("plan", "parameters" in self.type("plan", str(self.run.folder / "run.yaml"), "--step-ms", "10"))
        self.check("config explain", "deadline_s" in self.type("config", "explain"))
        self.check("field", subprocess.run([self.programs / "atollctl", "field", "a.b"], input='{"a": {"b": 7}}', text=True,
                                           capture_output=True, timeout=30, check=False).stdout.strip() == "7")
        self.note(("field",))
        self.check("completion", "complete -o" in self.type("completion", "bash"))
        self.tokens = tokens

    def start(self):
        self.run.launch(self.programs / "atoll-worker", [f"--data={self.tokens}", "--threads=1", "--device=cpu"])
        self.until("version 2", lambda: self.run.head() >= 2)
        doctor = json.loads(self.type("doctor", "--json"))
        ports = {check["name"]: check["verdict"] for check in doctor} if isinstance(doctor, list) else {
            check["name"]: check["verdict"] for check in doctor["checks"]}
        self.check(f"doctor finds both ports: {ports}", ports.get("data port") == "ok" and ports.get("admin port") == "ok")

    def look(self):
        status = json.loads(self.type("status", "--json"))
        self.check(f"status: {status['state']}", status["state"] == "RUN_STATE_TRAINING")
        self.check("run status is status", "day" in self.type("run", "status"))
        launcher = json.loads(self.type("launcher", "--json"))
        self.check(f"launcher: {launcher}", launcher["kind"] == "process" and launcher["target"] == 3)
        listed = json.loads(self.type("workers", "list", "--json"))["workers"]
        self.check(f"workers list: {listed}", {worker["name"] for worker in listed} == {"w0", "w1", "w2"})
        self.check("workers describe", "w0" in self.type("workers", "describe", "w0"))
        self.check("events", "RUN" in self.type("events") or "SEEDED" in self.type("events"))
        metrics = json.loads(self.type("metrics", "--json"))
        self.check(f"metrics: {metrics['version']}", int(metrics["version"]) >= 2)
        lines = self.type("metrics", "export").splitlines()
        self.check("metrics export", any("train/loss" in line for line in lines))
        compared = json.loads(self.type("compare", f"now={self.run.admin}", "--loss", "training", "--json"))
        self.check(f"compare: {compared['runs'][0]['name']}", len(compared["runs"][0]["points"]) >= 2)
        self.check("verify", "DIFFERENT" not in self.type("verify") and "bit equal" in self.type("verify"))
        watching = self.watch("--json", "--interval", "0.1", "--line-interval", "0.1")
        heads = [int(json.loads(watching.stdout.readline())["fragments"][0]["version"]) for _ in range(20)]
        self.check(f"watch follows the run: {heads}", heads == sorted(heads))
        self.ends(watching, "its reader")

    def ends(self, watching, what):
        watching.stdout.close()
        try:
            code = watching.wait(10)
            self.check(f"watch ends with {what}: {code}", code in (0, -signal.SIGPIPE))
        except subprocess.TimeoutExpired:
            watching.kill()
            watching.wait()
            self.check(f"watch does not end with {what}", False)

    def watch(self, *more):
        self.note(("watch",))
        return subprocess.Popen([self.programs / "atollctl", "--admin", self.run.admin, "watch", *more],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def change_settings(self):
        self.type("config", "set", "inner.steps=8", "--expect", "1")
        self.check("config history", "inner.steps: 10 -> 8" in self.type("config", "history", "--diff"))
        self.check("config show", re.search(r"steps: 8\b", self.type("config", "show")))
        self.until("w0's rounds to have 8 steps", lambda: int(self.worker("w0").get("inner_steps", 0)) == 8)

    def extend(self):
        before = self.type("config", "show")
        shown = json.loads(self.type("run", "extend", "50", "--dry-run", "--json"))
        rounds = shown["rounds_after"]
        self.check(f"extend --dry-run: {shown}", rounds == shown["rounds_before"] + 50 and self.type("config", "show") == before)
        self.type("run", "extend", "50", "--yes")
        self.check(f"extend to {rounds} rounds", re.search(rf"rounds: {rounds}\b", self.type("config", "show")))

    def change_the_crew(self):
        self.type("workers", "add", "1")
        self.until("w3 to train", lambda: self.active("w3") and int(self.worker("w3")["contributions_accepted"]) > 0)
        self.type("workers", "scale", "3")
        self.until("w3 to leave", lambda: self.worker("w3").get("state") in GONE)
        before = self.worker("w1")["incarnation"]
        self.type("workers", "restart", "w1", "--reason", "new driver")
        self.until("w1 to come back", lambda: self.active("w1") and self.worker("w1")["incarnation"] != before)
        self.type("workers", "drain", "w2", "--reason", "maintenance")
        self.until("w2 to leave", lambda: self.worker("w2").get("state") in GONE)
        self.next_version(2)
        self.check("a drained worker stays away", self.worker("w2").get("state") in GONE and self.process("w2") is None)
        self.type("workers", "forget", "w2")
        self.check("a forgotten worker is not listed", "w2" not in self.run.workers())

    def resync(self):
        """An order is void once its worker has the head by itself: the round must outlast a heartbeat, whatever the machine."""
        self.rounds_of(500)
        self.next_version()
        self.rounds_of(int(LONG_ROUND_S * float(self.worker("w0")["steps_per_second"])))
        log = self.run.folder / "coordinator/workers/w0.log"
        dropped = lambda: "drop local progress and pull the head" in log.read_text()
        for _ in range(5):
            # On a machine that became faster the round may end first: then the next one serves.
            head = self.run.head()
            self.type("workers", "resync", "w0")
            self.until("w0 to drop its progress, or the round to end", lambda: dropped() or self.run.head() > head)
            if dropped():
                break
        self.check("w0 drops its progress", dropped())
        self.until("w0 to have the head", lambda: self.worker("w0").get("pending_command", "COMMAND_NONE") in ("COMMAND_NONE", "COMMAND_UNSPECIFIED"))
        self.type("config", "set", "inner.steps=8")
        self.until("short rounds", lambda: int(self.worker("w0").get("inner_steps", 0)) == 8)

    def rounds_of(self, steps):
        self.type("config", "set", f"inner.steps={steps}")
        self.until(f"rounds of {steps} steps", lambda: int(self.worker("w0").get("inner_steps", 0)) == steps)

    def throw_out(self):
        before = self.worker("w1")["incarnation"]
        self.type("workers", "evict", "w1")
        self.until("w1 to join again by itself", lambda: self.active("w1") and self.worker("w1")["incarnation"] != before)
        self.type("workers", "ban", "w1")
        self.check("w1 is banned", self.worker("w1").get("banned") is True)
        self.until("w1's process to end", lambda: self.process("w1") is None)
        self.next_version()
        self.check("a banned worker is out", not self.active("w1"))
        self.type("workers", "unban", "w1")
        self.until("w1 to be let in again", lambda: self.active("w1"))

    def pause(self):
        """Also what wants a run that stands still: export, generate."""
        self.type("run", "pause", "--reason", "noon")
        self.check("paused", self.run.status()["state"] == "RUN_STATE_PAUSED")
        self.until("workers to wait", self.all_wait)
        head = self.run.head()
        self.check("run reset-data", self.type("run", "reset-data"))
        self.export(head)
        self.check("nothing was published meanwhile", self.run.head() == head)
        self.type("run", "resume")
        self.next_version()

    def all_wait(self):
        """Also those that joined a moment ago: what they pull counts as the run's traffic."""
        active = [worker for worker in (self.run.workers() or {}).values() if worker.get("state") == "active"]
        return bool(active) and all(worker.get("progress", {}).get("phase") == "WORKER_PHASE_WAITING" for worker in active)

    def export(self, head):
        # What they pull is not the run's: nobody trains meanwhile.
        moved = self.run.status()["traffic"]
        model = self.folder / "model.safetensors"
        self.type("export", "--out", str(model))
        data = model.read_bytes()
        header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        self.check(f"export has version {head}: {header['__metadata__']}", header["__metadata__"]["atoll_version"] == str(head))
        self.check("export has the tensors", "transformer.wte.weight" in header)
        texts = [self.generate("--coordinator", self.run.data),
                 self.generate("--model", model, "--config", self.run.folder / "run.yaml")]
        self.check(f"generate, from the run and from the file: {texts}", texts[0] == texts[1] and texts[0].startswith("the quick"))
        now = self.run.status()["traffic"]
        self.check(f"the run's traffic before export and generate: {moved}, after: {now}", int(moved["pull_bytes"]) > 0 and now == moved)

    def generate(self, *source):
        done = subprocess.run([self.programs / "atoll-worker", "generate", *source, "--prompt", "the quick", "--tokens", "24",
                               "--seed", "5", "--threads", "1", "--device", "cpu"], capture_output=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"generate: {done.returncode}, {done.stderr.decode()}")
        return done.stdout.decode(errors="replace")

    def close_round(self):
        frozen = self.process("w1")
        os.kill(frozen, signal.SIGSTOP)
        try:
            # All must push (quorum 1.0), so the round stands still until it is closed by hand, or w1's lease ends.
            self.until("the round to wait for w1", self.stands_still, 10)
            self.type("run", "close-round", "--reason", "w1 hangs")
            closed = re.compile(r"version \d+ from 1 contribution: closed by .*: w1 hangs")
            self.until("the round to close without w1", lambda: closed.search(self.run.log_end()), 15)
        finally:
            os.kill(frozen, signal.SIGCONT)
        self.until("w1 to train on", lambda: self.active("w1"))
        self.next_version()

    def stands_still(self):
        head = self.run.head()
        time.sleep(0.7)
        return self.run.head() == head

    def checkpoints(self):
        self.type("checkpoint", "create", "noon")
        made = json.loads(self.type("checkpoint", "list", "--check", "--json"))["checkpoints"]
        self.check(f"checkpoint list: {made}", [entry["name"] for entry in made] == ["noon"] and not made[0].get("damage"))
        tokens = int(made[0]["committed_tokens"])
        self.start_from_a_copy("noon")
        self.next_version(3)
        before = self.run.status()
        self.check("no confirmation, no restore", self.run.ctl("checkpoint", "restore", "noon") is None)
        self.check(f"it names --yes: {self.run.complaint}", "--yes" in self.run.complaint)
        restored = json.loads(self.type("checkpoint", "restore", "noon", "--yes", "--json"))
        self.check(f"restore goes back to {tokens} tokens: {restored}", int(restored["committed_tokens"]) == tokens)
        self.check("the head never goes back", int(restored["versions"][0]) > int(before["fragments"][0]["version"]))
        self.check("a new epoch", restored["epoch"] != before["epoch"])
        self.next_version(2)
        self.type("checkpoint", "delete", "noon", "--yes")
        self.check("it is deleted", not json.loads(self.run.ctl("checkpoint", "list", "--json")).get("checkpoints"))
        self.check("nor is its folder left", not list((self.run.folder / "coordinator").glob("checkpoints/noon*")))

    def start_from_a_copy(self, name):
        """Another coordinator, as on another machine: those who were there when the checkpoint was made are not, and may come."""
        copy = HandRun(self.folder / "copy", self.programs, CONFIG)
        shutil.copytree(self.run.folder / "coordinator/checkpoints" / name, copy.folder / "coordinator")
        try:
            copy.start_coordinator()
            self.check("the copy goes on in an epoch of its own", copy.status()["epoch"] != self.run.status()["epoch"])
            copy.start_worker("w0", self.tokens)
            copy.wait_for(lambda: (copy.workers() or {}).get("w0", {}).get("state") == "active", PATIENCE_S, "w0 to join the copy")
            self.check(f"w0 joins at once: {copy.worker_log_end('w0')}", "another live worker" not in copy.worker_log_end("w0"))
        finally:
            copy.kill_all()

    def tokens_of_the_run(self):
        self.run.credentials = ["--token-file", self.run.folder / "coordinator/access/admin.token"]
        self.type("tokens", "create", "--role", "observer", "--name", "grafana", "--out", str(self.folder / "grafana.token"))
        mode = (self.folder / "grafana.token").stat().st_mode & 0o777
        self.check(f"its file is ours alone: {mode:o}", mode == 0o600)
        listed = [t for t in json.loads(self.type("tokens", "list", "--json"))["tokens"] if t["name"] == "grafana"]
        self.check(f"tokens list: {listed}", len(listed) == 1 and listed[0].get("revoked_unix_nanos", "0") == "0")
        self.type("tokens", "revoke", listed[0]["id"])
        listed = [t for t in json.loads(self.run.ctl("tokens", "list", "--json"))["tokens"] if t["name"] == "grafana"]
        self.check(f"revoked: {listed}", listed[0].get("revoked_unix_nanos", "0") != "0")
        # Where workers that nobody knows can join, `config validate` recommends a preset.
        self.check("validate recommends nothing before", "offenders: strict" not in self.said_of_the_file())
        out = self.folder / "any.token"
        self.type("tokens", "create", "--role", "worker", "--any-name", "--out", str(out))
        self.check("validate recommends offenders: strict", "offenders: strict" in self.said_of_the_file())
        worker = [t for t in json.loads(self.type("tokens", "list", "--json"))["tokens"] if t["role"] == "worker" and not t.get("name")]
        self.check(f"one token for any name: {worker}", len(worker) == 1)
        self.type("tokens", "revoke", worker[0]["id"])
        self.check("validate recommends nothing after", "offenders: strict" not in self.said_of_the_file())
        self.run.credentials = ()

    def said_of_the_file(self):
        done = subprocess.run([self.programs / "atollctl", "--admin", self.run.admin, *self.run.credentials, "config", "validate",
                               self.run.folder / "run.yaml"], capture_output=True, text=True, timeout=30, check=False)
        self.check(f"config validate: {done.returncode}, {done.stderr}", done.returncode == 0)
        self.check("whether strangers come was asked", "was not checked" not in done.stderr)
        return done.stderr

    def evening(self):
        watching = self.watch("--until-finished", "--interval", "0.2")
        self.check("verify after all of it", "bit equal" in self.type("verify"))
        self.type("run", "stop", "--yes", "--reason", "evening")
        self.check("stopped", self.run.status()["state"] == "RUN_STATE_STOPPED")
        self.until("watch to end with the run", lambda: watching.poll() is not None)
        self.check("watch ends with 0", watching.returncode == 0)
        watching.stdout.close()
        self.until("the workers to end", lambda: all(self.process(name) is None for name in ("w0", "w1")))
        self.check("the summary", "day" in self.type("status", "--summary"))
        audit = " ".join(event["message"] for event in self.run.events() if event["kind"].endswith("ADMIN_ACTION"))
        for action in ("evict", "ban", "unban", "resync", "drain", "restart", "close_round", "pause", "resume", "stop", "noon"):
            self.check(f"the event log names {action}", action in audit)

    def all_commands_were_used(self):
        for command in self.given.missing(self.programs / "atollctl"):
            self.check(f"atollctl {command} has no place in the day", False)


def measure(folder, programs):
    day = Day(folder, programs)
    day.before_the_run(tokenize_foxes(programs, folder))
    begun = time.monotonic()
    try:
        for part in (day.start, day.look, day.change_settings, day.extend, day.change_the_crew, day.resync, day.throw_out, day.pause, day.close_round,
                     day.checkpoints, day.tokens_of_the_run, day.evening):
            before = time.monotonic()
            part()
            print(f"{part.__name__}: {time.monotonic() - before:.1f} s", flush=True)
        day.all_commands_were_used()
    except (RuntimeError, KeyError, ValueError, TypeError) as problem:
        day.complaints.append(f"{type(problem).__name__}: {problem}")
    ended = day.run.end()
    day.check(f"the coordinator ends with 0, not {ended}: {day.run.log_end()}", ended == 0)
    print(f"{len(day.given.paths)} commands in {time.monotonic() - begun:.0f} s")
    return day.complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    return judge("atoll-day-", parser.parse_args(), measure)


if __name__ == "__main__":
    sys.exit(main())
