#!/usr/bin/env python3
"""SIGTERM to one rank in its first moments, while it still loads its libraries: the worker drains and ends.

An island of two ranks starts, and one rank gets SIGTERM: as soon as its process exists, and a little later. It must show: the
supervisor ends with code 0, no rank counts as lost, nothing starts again, and no rank is left. So does SIGTERM to all
processes at once, later on, and SIGTERM to a supervisor whose log nobody reads. A rank is lost while there is no folder
for temporary files, and below a parent that ignores SIGCHLD: the ranks start again.

Usage: early_stop.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import array
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import termios
import time

from island_run import IslandRun, config, run_as_test, tokenize_foxes

BOUND_S = 90  # two programs with LibTorch start and end on two shared cores
MOMENTS_S = (0, 0.1, 0.5)


class StoppedRun(IslandRun):
    output = None  # a descriptor: where the next process writes its log, instead of into a file

    def spawn(self, log, *command):
        if self.output is None:
            return super().spawn(log, *command)
        return self.launch(self.output, *command)


def children(process):
    """Process ids, in the order of their start: rank 0 first. Also before they execute the program."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def await_child(process, rank):
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        found = children(process)
        if len(found) > rank:
            return found[rank]
        time.sleep(0.001)
    raise TimeoutError(f"no process of rank {rank} within {BOUND_S} s")


def stop_early(run, tokens, complaints, rank, moment):
    logged = len(run.log("w0"))
    island = run.start_island("w0", tokens, 2, "--rank-timeout", "20")
    process = await_child(island.pid, rank)
    time.sleep(moment)
    begin = time.monotonic()
    os.kill(process, signal.SIGTERM)
    what = f"SIGTERM to rank {rank} {moment} s after its start"
    try:
        code = island.wait(BOUND_S)
    except subprocess.TimeoutExpired:
        complaints.append(f"{what}: the worker trains on after {BOUND_S} s: {run.worker_log_end('w0')}")
        left = children(island.pid)
        island.kill()
        island.wait()
        for one in left:
            os.kill(one, signal.SIGKILL)
        return
    said = run.log("w0")[logged:]
    if code != 0:
        complaints.append(f"{what}: exit code {code}: {run.worker_log_end('w0')}")
    if "a rank is lost" in said or said.count("starting the ranks") != 1:
        complaints.append(f"{what}: the ranks started again: {said[-1500:]}")
    if pathlib.Path(f"/proc/{process}").exists():
        complaints.append(f"{what}: the rank outlives its supervisor")
    print(f"{what}: ended after {time.monotonic() - begin:.1f} s with code {code}", flush=True)


def stop_all_at_once(run, tokens, complaints):
    """systemd and pkill signal the supervisor and its ranks, which also get the supervisor's signal."""
    begin, logged = run.head(), len(run.log("w0"))
    island = run.start_island("w0", tokens, 2, "--rank-timeout", "20")
    run.await_version(begin + 2)
    for process in (*children(island.pid), island.pid):
        os.kill(process, signal.SIGTERM)
    code = island.wait(BOUND_S)
    if code != 0 or "a rank is lost" in run.log("w0")[logged:]:
        complaints.append(f"SIGTERM to all processes at once: exit code {code}: {run.worker_log_end('w0')}")


def freeze_early(run, tokens, complaints, asked_to_end):
    """Rank 0 is frozen before it has written into the store: the other rank waits for it, but not for long."""
    logged = len(run.log("w0"))
    island = run.start_island("w0", tokens, 2, "--rank-timeout", "5", "--max-restarts", "0")
    os.kill(await_child(island.pid, 0), signal.SIGSTOP)
    await_child(island.pid, 1)
    begin = time.monotonic()
    if asked_to_end:
        time.sleep(2)
        island.terminate()
    try:
        code = island.wait(BOUND_S)
    except subprocess.TimeoutExpired:
        complaints.append(f"rank 0 frozen at its start: the worker still waits after {BOUND_S} s: {run.worker_log_end('w0')}")
        for one in children(island.pid):
            os.kill(one, signal.SIGKILL)
        island.kill()
        island.wait()
        return
    print(f"rank 0 frozen at its start: ended after {time.monotonic() - begin:.1f} s with code {code}", flush=True)
    if asked_to_end and code not in (8, 130):
        complaints.append(f"rank 0 frozen at its start, and SIGTERM: exit code {code}: {run.worker_log_end('w0')}")
    if not asked_to_end and (code != 3 or "giving up" not in run.log("w0")[logged:]):
        complaints.append(f"rank 0 frozen at its start: exit code {code}: {run.worker_log_end('w0')}")


def stop_with_a_frozen_rank(run, tokens, complaints):
    begin, logged = run.head(), len(run.log("w0"))
    island = run.start_island("w0", tokens, 2, "--rank-timeout", "4", "--drain-seconds", "2")
    run.await_version(begin + 2)
    os.kill(children(island.pid)[1], signal.SIGSTOP)
    island.terminate()
    code = island.wait(BOUND_S)
    said = run.log("w0")[logged:]
    if code != 8 or "lost a rank before it had drained" not in said:
        complaints.append(f"SIGTERM with a frozen rank: exit code {code}: {run.worker_log_end('w0')}")


def go_on_and_drain(run, complaints, island, what):
    run.await_version(run.head() + 2)
    island.terminate()
    code = island.wait(BOUND_S)
    if code != 0:
        complaints.append(f"{what}: exit code {code}: {run.worker_log_end('w0')}")


def lose_a_rank_without_temporary_files(run, tokens, complaints, temporary):
    """The folder for temporary files is away when the ranks are to start again: the supervisor tries again."""
    begin, logged = run.head(), len(run.log("w0"))
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    island = run.start_island("w0", tokens, 2)
    del os.environ["TMPDIR"]
    run.await_version(begin + 2)
    temporary.rename(temporary.with_name("away"))
    os.kill(children(island.pid)[1], signal.SIGKILL)
    run.wait_for(lambda: f"making the folder {temporary}" in run.log("w0")[logged:], BOUND_S, "a line that names the folder that is away")
    temporary.with_name("away").rename(temporary)
    go_on_and_drain(run, complaints, island, "no folder for temporary files for a while")


def end_below_a_parent_that_ignores_its_children(run, tokens, complaints):
    begin = run.head()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    island = run.start_island("w0", tokens, 2)
    signal.signal(signal.SIGCHLD, before)
    run.await_version(begin + 2)
    logged = len(run.log("w0"))
    os.kill(children(island.pid)[1], signal.SIGKILL)
    run.wait_for(lambda: "a rank is lost" in run.log("w0")[logged:], BOUND_S, "the loss of a rank to be noticed")
    go_on_and_drain(run, complaints, island, "below a parent that ignores SIGCHLD")


def stop_with_an_unread_log(run, tokens, complaints):
    """Standard error is a pipe that nobody reads: a log that nobody reads must not stop the supervisor."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    run.output = writes
    island = run.start_worker("unread", tokens, "--ranks", "2", "--log-level", "debug")
    os.close(writes)
    run.output = None
    try:
        deadline = time.monotonic() + BOUND_S
        while time.monotonic() < deadline and held(reads) < 3000:
            time.sleep(0.1)
        if held(reads) < 3000:
            complaints.append(f"the pipe of the unread log holds {held(reads)} bytes: it is not full")
        run.await_version(run.head() + 3)
        begin = time.monotonic()
        island.terminate()
        code = island.wait(BOUND_S)
        print(f"SIGTERM with an unread log: ended after {time.monotonic() - begin:.1f} s with code {code}", flush=True)
        if code != 0:
            complaints.append(f"SIGTERM with an unread log: exit code {code}")
    except subprocess.TimeoutExpired:
        complaints.append(f"SIGTERM with an unread log: the worker trains on after {BOUND_S} s")
    finally:
        os.close(reads)


def held(pipe):
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def measure(folder, programs):
    run = StoppedRun(folder / "run", programs, config())
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    try:
        run.start_coordinator()
        for moment in MOMENTS_S:
            for rank in (0, 1):
                stop_early(run, tokens, complaints, rank, moment)
        stop_all_at_once(run, tokens, complaints)
        stop_with_an_unread_log(run, tokens, complaints)
        stop_with_a_frozen_rank(run, tokens, complaints)
        lose_a_rank_without_temporary_files(run, tokens, complaints, folder / "temporary")
        end_below_a_parent_that_ignores_its_children(run, tokens, complaints)
        for asked_to_end in (False, True):
            freeze_early(run, tokens, complaints, asked_to_end)
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-early-stop-", __doc__, measure))
