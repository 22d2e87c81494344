#!/usr/bin/env python3
"""A launched worker that hangs is ended by the first command, between real programs.

Two workers train; w1 is frozen (SIGSTOP), and told to restart before its lease ends. Nobody but the launcher can end such a
process. It must show: after the lease the launcher ends the process and starts another, which joins; frozen and evicted,
the process is shown as absent, and not as running; frozen and told to drain, it is ended and stays drained. Each command is
given once.

Usage: hung_worker.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import json
import os
import signal
import sys

from drain import CONFIG, pid_of
from real_run import RealRun, run_as_test, tokenize_foxes

PATIENCE_S = 120
ROUNDS = "round: {deadline_s: 60, lease_s: 4, quorum: 0.5, grace: fixed, grace_s: 0.5}\n"


def launched(run, name):
    text = run.ctl("launcher", "--json")
    found = [worker for worker in json.loads(text).get("workers", []) if worker["name"] == name] if text else []
    return found[0].get("state") if found else None


def is_member(run, pid):
    """w1 has joined in another process than `pid`."""
    return pid_of(run, "w1") != pid and (run.workers() or {}).get("w1", {}).get("state") == "active"


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def told(run, complaints, *command):
    if run.ctl("workers", *command) is None:
        complaints.append(f"{' '.join(command)}: {run.complaint}")


def freeze(run, name):
    """Its process id."""
    pid = pid_of(run, name)
    os.kill(pid, signal.SIGSTOP)
    return pid


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    run = RealRun(folder / "run", programs, CONFIG + ROUNDS)
    complaints = []
    try:
        run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"], more=["--worker-grace", "2"])
        run.wait_for(lambda: run.head() >= 2, PATIENCE_S, "version 2")
        run.wait_for(lambda: is_member(run, 0), PATIENCE_S, "w1 to join")

        hung = freeze(run, "w1")
        told(run, complaints, "restart", "w1")
        run.wait_for(lambda: is_gone(hung), PATIENCE_S, "the frozen process to be ended after one restart")
        run.wait_for(lambda: is_member(run, hung), PATIENCE_S, "the next process to join")

        hung = freeze(run, "w1")
        told(run, complaints, "evict", "w1")
        if launched(run, "w1") != "absent":
            complaints.append(f"an evicted worker that hangs is shown as '{launched(run, 'w1')}'")
        told(run, complaints, "restart", "w1")
        run.wait_for(lambda: is_gone(hung), PATIENCE_S, "the evicted process to be ended")
        run.wait_for(lambda: is_member(run, hung), PATIENCE_S, "its successor to join")

        hung = freeze(run, "w1")
        told(run, complaints, "drain", "w1")
        run.wait_for(lambda: is_gone(hung), PATIENCE_S, "the frozen process to be ended after one drain")
        run.wait_for(lambda: launched(run, "w1") == "drained", PATIENCE_S, "w1 to be drained")
        if pid_of(run, "w1") != hung:
            complaints.append("a drained worker was started again")
        print(f"ended after one command each; {len(run.events())} events")
    finally:
        run.end()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-hung-", __doc__, measure))
