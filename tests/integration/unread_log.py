#!/usr/bin/env python3
"""Logs that nobody reads, with real programs.

The coordinator and two workers write their logs into pipes of one page, and nothing reads them: like a terminal after Ctrl-S, or a
collector that hangs. The run must go on, a drain must end, SIGTERM must end each program with its usual exit code, and each program must say
how many lines it dropped, in its metrics and in the log once it is read.

Usage: unread_log.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import array
import fcntl
import os
import re
import signal
import sys
import termios
import threading
import urllib.request

from hand_run import HandRun
from real_run import run_as_test, tokenize_foxes

PATIENCE_S = 120
F_SETPIPE_SZ = 1031
CONFIG = """run: {name: unread, workers: 2, rounds: 1000000, seed: 3}
model: {gpt: {layers: 1, heads: 1, width: 16, context: 8, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 2}
inner: {steps: 1, learning_rate: 0.005, batch: 1}
round: {deadline_s: 60, lease_s: 10}
evaluation: {every: 0}
checkpoint: {shards: 1}
"""


class UnreadRun(HandRun):
    """Every program's standard output and error is a pipe of one page."""

    def __init__(self, folder, programs):
        super().__init__(folder, programs, CONFIG)
        self.logs = {}  # name of the log -> reading end

    def spawn(self, log, *command):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        self.logs[log] = reader
        try:
            return self.launch(writer, *command, "--log-level", "debug")
        finally:
            os.close(writer)

    def log_end(self):
        return "nobody read the log"

    def unread(self, log):
        """Bytes in the pipe."""
        count = array.array("i", [0])
        fcntl.ioctl(self.logs[log], termios.FIONREAD, count)
        return count[0]

    def dropped(self):
        """Lines that the coordinator dropped, by its metrics."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=30) as answer:
            return float(re.search(r"^atoll_log_lines_dropped_total (\S+)$", answer.read().decode(), re.M).group(1))


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    run = UnreadRun(folder, programs)
    try:
        run.start_coordinator("--metrics-listen", "127.0.0.1:0")
        workers = {name: run.start_worker(name, tokens) for name in ("a", "b")}
        run.wait_for(lambda: run.head() >= 20, PATIENCE_S, "20 versions")
        logs = ["coordinator.log", "a.log", "b.log"]
        run.wait_for(lambda: all(run.unread(log) > 3000 for log in logs), PATIENCE_S, "full pipes")
        # A megabyte of lines waits; then the newest are dropped.
        run.wait_for(lambda: run.dropped() > 0, PATIENCE_S, "dropped lines")
        head = run.head()
        run.wait_for(lambda: run.head() >= head + 20, PATIENCE_S, "20 more versions")

        if run.ctl("workers", "drain", "a") is None:
            complaints.append(f"drain: {run.complaint}")
        ends = {"a": workers["a"].wait(PATIENCE_S)}
        workers["b"].send_signal(signal.SIGTERM)
        ends["b"] = workers["b"].wait(PATIENCE_S)

        text = []
        reader = threading.Thread(target=lambda: text.append(os.fdopen(run.logs["coordinator.log"], "rb").read()))
        reader.start()  # the collector works again
        run.wait_for(lambda: run.unread("coordinator.log") == 0, PATIENCE_S, "the coordinator's log to be read")
        dropped = run.dropped()
        ends["coordinator"] = run.stop_coordinator()
        reader.join(PATIENCE_S)
        lines = re.findall(rb'"message":"lines were dropped: [^\n]*"lines":(\d+)', text[0])
        print(f"exit codes {ends}; the coordinator dropped {dropped:.0f} lines, and its log says {[int(count) for count in lines]}")
        if ends != {"a": 0, "b": 0, "coordinator": 0}:
            complaints.append(f"exit codes {ends}")
        if sum(map(int, lines)) != dropped:
            complaints.append(f"{dropped} lines were dropped, and the log says {lines}")
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-unread-", __doc__, measure))
