#!/usr/bin/env python3
"""A drained worker finishes what it has begun, between real programs.

Two workers train; w1 is slowed down (stopped for most of the time) and drained in the middle of a round. Until its next
heartbeat, 10 s later, it does not know of the order and begins more rounds. It must show, in blocking, overlapped and async
mode: no push of w1 is refused, w1 exits with code 0 and its log says that nothing is lost, the WORKER_DRAINED event names
its last push as counted, and the round records hold that push. In the last part a round closes without w1 by its own rules
(quorum): w1 then exits with code 8, and the event and its log say that the last push did not count. Whether the slowed w1
loses that race is chance, so the part is repeated until it does; exit code, event and log must agree each time.

Usage: drain.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import os
import re
import signal
import sys
import threading
import time

from real_run import RealRun, run_as_test, tokenize_foxes

PATIENCE_S = 90
RACES = 6
CONFIG = """run: {name: drain, workers: 2, rounds: 100000, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 4}
inner: {steps: 60, learning_rate: 0.005, batch: 4}
evaluation: {every: 0}
checkpoint: {shards: 1}
"""
PARTS = {
    "blocking": "round: {deadline_s: 60, lease_s: 30, staleness_limit: 0}\n",
    "overlapped": "round: {deadline_s: 60, lease_s: 30, staleness_limit: 0}\nsync: {mode: overlapped, fragments: 2}\n",
    "async": "round: {deadline_s: 60, lease_s: 30, mode: async, staleness_limit: 40}\nouter: {optimizer: delayed_nesterov}\n",
    "too late": "round: {deadline_s: 60, lease_s: 3, quorum: 0.5, grace: fixed, grace_s: 0, staleness_limit: 0}\n",
}


class Slowed:
    """Stops a process for three quarters of the time while the `with` block runs."""
    def __init__(self, pid):
        self.pid, self.over = pid, threading.Event()
        self.thread = threading.Thread(target=self.slow)

    def slow(self):
        try:
            while not self.over.is_set():
                signal.pidfd_send_signal(self.descriptor, signal.SIGSTOP)
                time.sleep(0.15)
                signal.pidfd_send_signal(self.descriptor, signal.SIGCONT)
                self.over.wait(0.05)
        except ProcessLookupError:
            pass  # it has drained

    def __enter__(self):
        self.descriptor = os.pidfd_open(self.pid)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def pid_of(run, worker):
    lines = re.findall(rf"{worker} started \(process (\d+)", (run.folder / "coordinator.log").read_text())
    return int(lines[-1])


def exit_of(run, worker):
    for event in run.events():
        found = re.search(rf"{worker} (?:was drained|finished|ended): exit code (\d+)", event.get("message", ""))
        if found:
            return int(found.group(1))
    return None


def counted(run, worker):
    """Contributions of it that were accepted; 0 for one that has not joined."""
    return int((run.workers() or {}).get(worker, {}).get("contributions_accepted", 0))


def drain(folder, programs, tokens, name, complaints, attempt=0):
    """The exit code of the drained worker."""
    run = RealRun(folder / f"{name.replace(' ', '-')}-{attempt}", programs, CONFIG + PARTS[name])
    say = lambda what: complaints.append(f"{name}: {what}")
    try:
        run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])
        run.wait_for(lambda: run.head() >= 2, PATIENCE_S, "version 2")
        # Async mode makes versions before w1 has joined; a worker that is not there yet cannot be drained.
        run.wait_for(lambda: counted(run, "w1") > 0, PATIENCE_S, "a contribution of w1")
        with Slowed(pid_of(run, "w1")):
            head = run.head()
            run.wait_for(lambda: run.head() > head, PATIENCE_S, "a version of a slowed worker")
            accepted = counted(run, "w1")
            if name == "too late":
                run.wait_for(lambda: run.workers()["w1"].get("contributions_refused", 0) not in (0, "0"), PATIENCE_S, "a refusal")
            if run.ctl("workers", "drain", "w1") is None:
                raise RuntimeError(f"drain failed: {run.complaint}")
            run.wait_for(lambda: exit_of(run, "w1") is not None, PATIENCE_S, "w1 to end")
        events = run.events()
        code = exit_of(run, "w1")
        refused = [e["message"] for e in events if "REFUSED" in e.get("kind", "") and e.get("worker") == "w1"]
        drained = [e["message"] for e in events if e.get("kind") == "WORKER_DRAINED"]
        log = (run.folder / "coordinator/workers/w1.log").read_text()
        after = counted(run, "w1") - accepted
        print(f"{name}: exit code {code}, {len(refused)} refused, {after} accepted after the drain, {drained}")
        if name == "too late":
            event, line = (("does not count", "did not count") if code == 8 else ("counted", "nothing that was pushed last is lost"))
            if code not in (0, 8) or not drained or event not in drained[0] or line not in log:
                say(f"exit code, event and log do not agree: exit code {code}, {drained}, {log[-500:]}")
            return code
        if refused:
            say(f"{len(refused)} pushes of the drained worker were refused, the last one: {refused[-1]}")
        if code != 0 or "nothing that was pushed last is lost" not in log:
            say(f"exit code {code}, its log ends: {log[-500:]}")
        found = re.search(r"its last push, on version (\d+) of fragment (\d+), counted", drained[0] if drained else "")
        if not found:
            say(f"the event does not say that its last push counted: {drained}")
        return code
    finally:
        run.end()


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    for name in PARTS:
        if name != "too late":
            drain(folder, programs, tokens, name, complaints)
        elif all(drain(folder, programs, tokens, name, complaints, attempt) != 8 for attempt in range(RACES)):
            complaints.append(f"{name}: the last push counted {RACES} times; no loss was there to be told")
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-drain-", __doc__, measure))
