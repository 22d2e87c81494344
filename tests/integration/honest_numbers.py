#!/usr/bin/env python3
"""What real programs show when they do not know, when nobody trains any more, and after a restart.

It must show: before a worker's first step there is no loss, in JSON, in the table and in the metrics, rather than 0; once the last
worker is dead, 0 tokens/s and no time left; a finished run's clock stands still and its utilisation is that of its workers; after the
coordinator was started again, the run's time goes on where it was; `watch` on a terminal of 80 x 24 keeps the run's name at the top.
A run that no evaluator evaluates says so in its status and in one event, until one joins. On a small disk `doctor` writes a small part
of what is free, and on a smaller one it says that it does not measure.

Usage: honest_numbers.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time

from real_run import run_as_test, tokenize_foxes
from shaped_run import ShapedRun, scrape

CONFIG = """run: {{name: honest, workers: 1, rounds: {rounds}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {steps}, learning_rate: 0.005, batch: 4}}
round: {{deadline_s: 600, lease_s: 2}}
evaluation: {{every: 1, batches: 2, by: {by}}}
checkpoint: {{shards: 1}}
"""


def loss_lines(samples):
    return [name for (name, _), value in samples.items() if name.endswith("_train_loss") and value == 0]


def screen_of(run, seconds):
    """What `atollctl watch` leaves on a terminal of 80 x 24: the lines, after scrolling as a terminal does."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(run.programs / "atollctl", ["atollctl", "--admin", run.admin, "watch", "--interval", "0.2"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.set_blocking(terminal, False)
    data, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            data += os.read(terminal, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
    os.kill(pid, 15)
    time.sleep(0.2)
    os.close(terminal)
    os.waitpid(pid, 0)
    frame = data.decode(errors="replace").split("\x1b[H")[-2]  # the last whole one
    return drawn(frame, "\x1b[?7l" in data.decode(errors="replace"))


def drawn(frame, cut):
    """The rows of a terminal of 80 x 24 onto which this was written from its corner; `cut`: long lines are not wrapped."""
    rows, row, column, i = [[] for _ in range(24)], 0, 0, 0

    def feed():
        nonlocal row
        row += 1
        if row == 24:
            rows.pop(0)
            rows.append([])
            row = 23

    while i < len(frame):
        if frame[i] == "\x1b":
            while not frame[i].isalpha():
                i += 1
        elif frame[i] == "\n":
            feed()
            column = 0
        elif frame[i] != "\r":
            if column == 80 and not cut:
                feed()
                column = 0
            if column < 80:
                rows[row].append(frame[i])
                column += 1
        i += 1
    return ["".join(cells) for cells in rows]


def check_unknown(run, tokens, complaints):
    """Before a worker's first step there is no loss."""
    run.start_coordinator()
    run.ctl("run", "pause", "--reason", "before the first step")
    run.start_workers(tokens, ["w0"], 1000, 0)
    run.wait_for(lambda: "paused" in (run.workers() or {}).get("w0", {}).get("progress", {}).get("waiting_for", ""), 60,
                 "a worker that waits before its first step")
    progress = run.workers()["w0"]["progress"]
    if "loss" in progress or "0.000" in run.ctl("workers", "list"):
        complaints.append(f"a loss of a worker without a step: {progress}, {run.ctl('workers', 'list')}")
    metrics = json.loads(run.ctl("metrics", "--json"))
    if {"train_loss", "compute_utilisation"} & set(metrics):
        complaints.append(f"before the first round metrics knows a loss: {metrics}")
    if found := loss_lines(scrape(run.metrics_address)):
        complaints.append(f"losses of 0 in the coordinator's metrics: {found}")


def check_dead(run, tokens, complaints):
    run.start(tokens, ["w0"], 1000, 0)
    run.wait_for(lambda: (run.status() or {}).get("tokens_per_second", 0) > 0 and run.head() >= 2, 60, "a pace")
    status = run.status()
    if "created" not in run.ctl("status") or not status["eta_seconds"]:
        complaints.append(f"no time left while it trains: {status}")
    run.workers_killed()
    run.wait_for(lambda: (run.status() or {}).get("live_trainers") == 0, 30, "the worker's end to be seen")
    status, text = run.status(), run.ctl("status")
    if status["tokens_per_second"] or status["eta_seconds"] or "no worker trains" not in text or " 0 tok/s" not in text:
        complaints.append(f"after the last worker died: {status['tokens_per_second']} tokens/s, {status['eta_seconds']} s left: {text}")
    if not 0 < json.loads(run.ctl("metrics", "--json")).get("compute_utilisation", 0) <= 1:
        complaints.append("nothing is known of the utilisation of the worker that was")
    rows = screen_of(run, 2)
    if "honest" not in rows[0] or len([row for row in rows if row]) > 23:
        complaints.append("the run's name is not at the top of a terminal of 80 x 24:\n" + "\n".join(rows))


def check_end(run, tokens, complaints):
    run.start(tokens, ["w0"], 1000, 0)
    run.wait_for(lambda: (run.status() or {}).get("state") == "RUN_STATE_FINISHED", 60, "the end of the run")
    before = run.status()
    first = json.loads(run.ctl("metrics", "--json"))
    time.sleep(2)
    second = json.loads(run.ctl("metrics", "--json"))
    if first["wall_seconds"] != second["wall_seconds"] or not 0 < first["wall_seconds"] < 60:
        complaints.append(f"a finished run's clock: {first['wall_seconds']}, then {second['wall_seconds']} s")
    if not 0.05 < second.get("compute_utilisation", 0) <= 1:
        complaints.append(f"a finished run's utilisation: {second.get('compute_utilisation')}")
    run.restart()
    after = run.status()
    if abs(after.get("run_seconds", 0) - before.get("run_seconds", -1)) > 1e-6:
        complaints.append(f"the run's time before and after a restart: {before.get('run_seconds')}, {after.get('run_seconds')}")
    again = json.loads(run.ctl("metrics", "--json"))
    text = run.ctl("metrics")
    if "compute_utilisation" in again or "compute utilisation  -" not in text:
        complaints.append(f"a coordinator that heard of no worker knows their utilisation: {again}, {text}")


def start_evaluator(run, tokens, name):
    run.processes[name] = run.begin(name, "atoll-worker", "--role", "evaluator", "--coordinator", run.data, "--name", name, "--data", tokens,
                                    "--state-dir", run.folder / name, "--threads", "1", "--device", "cpu")


def check_evaluator(run, tokens, complaints):
    """Nobody evaluates until an evaluator joins; its lease is 2 s."""
    waits = lambda: [wait["what"] for wait in (run.status() or {}).get("waiting", []) if "evaluator" in wait["what"]]
    told = lambda: [event for event in run.events() if "no version is evaluated" in event["message"]]
    run.start(tokens, ["w0"], 1000, 0)
    run.wait_for(lambda: run.head() >= 1, 60, "version 1")
    if len(waits()) != 1 or "--role evaluator" not in run.ctl("status"):
        complaints.append(f"status does not say that an evaluator is missing: {waits()}, {run.ctl('status')}")
    run.wait_for(told, 30, "the event")
    # For two leases more it is not repeated.
    enough = run.status()["run_seconds"] + 4
    run.wait_for(lambda: run.status()["run_seconds"] >= enough, 30, "two leases")
    start_evaluator(run, tokens, "eval")
    run.wait_for(lambda: not waits(), 60, "the words to go")
    run.wait_for(lambda: run.status(history=100).get("evaluations"), 60, "an evaluation")
    if len(told()) != 1 or "--role evaluator" in run.ctl("status"):
        complaints.append(f"an evaluator is there: {told()}, {run.ctl('status')}")
    run.ctl("config", "set", "evaluation.by=worker")
    start_evaluator(run, tokens, "idle")
    run.wait_for(lambda: "this evaluator evaluates nothing" in (run.folder / "idle.log").read_text(), 60, "an idle evaluator's words")


# A tmpfs of 96 MiB that nobody else sees; the folder, MiB that are taken, a limit of a file's bytes, the program.
ON_A_SMALL_DISK = """set -e
mount -t tmpfs -o size=96m none "$1"
head -c "${2}M" /dev/zero >"$1/taken"
code=0
prlimit --fsize="$3" "$4" doctor --dir "$1" --json || code=$?
[ "$(ls -A "$1")" = taken ] || { echo "doctor leaves files behind" >&2; exit 99; }
exit "$code"
"""


def check_doctor(folder, programs, complaints):
    """It writes an eighth of the space that is free at most. A write beyond the limit of a file's size ends it."""
    for taken, verdict, words in ((40, None, "written and synced"), (70, "warn", "not measured: only 26")):
        done = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "bash", "-c", ON_A_SMALL_DISK,
                               "doctor", folder, str(taken), str((96 - taken) << 17), programs / "atollctl"],
                              capture_output=True, text=True, timeout=60, check=False)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]} if done.stdout else {}
        speed = checks.get("disk speed", {})
        if words not in speed.get("text", "") or verdict not in (None, speed["verdict"]) or done.returncode == 99:
            complaints.append(f"doctor on a disk with {96 - taken} MiB free: exit code {done.returncode}, {speed}, {done.stderr}")


class HonestRun(ShapedRun):
    def workers_killed(self):
        for worker in self.processes.values():
            worker.kill()
            worker.wait()
        self.processes = {}

    def restart(self):
        if self.end() != 0:
            raise RuntimeError(f"the coordinator does not end well: {self.log_of_coordinator()}")
        (self.folder / "ports.json").unlink()
        self.start_coordinator()

    def log_of_coordinator(self):
        return (self.folder / "coordinator.log").read_text()[-2000:]


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    (folder / "disk").mkdir()
    check_doctor(folder / "disk", programs, complaints)
    for check, rounds, steps in ((check_unknown, 1000, 5), (check_dead, 100000, 5), (check_end, 4, 20), (check_evaluator, 100000, 20)):
        by = "evaluator" if check is check_evaluator else "worker"
        with HonestRun(folder / check.__name__, programs, CONFIG.format(rounds=rounds, steps=steps, by=by)) as run:
            check(run, tokens, complaints)
        print(f"{check.__name__}: done", flush=True)
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-honest-", __doc__, measure))
