#!/usr/bin/env python3
"""A rank that is killed or hangs: the whole island starts again from its last saved state.

An island of two ranks trains. Each rank is killed (SIGKILL) at random moments, then each is frozen (SIGSTOP). It must show:
the supervisor names the rank and the cause and starts all ranks again within a bounded time, the worker keeps its name and
goes on with its optimizer's state, every version counts each contribution once and with the tokens of both ranks, and the
run never has another member. At the end the supervisor forwards SIGTERM, and all ranks end with code 0.

Usage: lost_rank.py --bin DIR [--kills N] [--seed N] [--overlapped] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import time

from island_run import OVERLAPPED, IslandRun, config, tokenize_foxes
from real_run import judge

TIMEOUT_S = 5  # of --rank-timeout
# Detection, the others' end, a pause, and the start of programs with LibTorch on two shared cores.
BOUND_S = TIMEOUT_S + 60


def lose(run, complaints, rank, sign, what):
    """Sends the signal and waits for new processes of all ranks."""
    before = run.ranks("w0")
    if rank not in before:
        run.wait_for(lambda: len(run.ranks("w0")) == 2, BOUND_S, "two ranks")
        before = run.ranks("w0")
    logged = len(run.log("w0"))
    begin = time.monotonic()
    os.kill(before[rank], sign)
    run.wait_for(lambda: len(now := run.ranks("w0")) == 2 and not set(now.values()) & set(before.values()), BOUND_S,
                 f"new processes after {what} of rank {rank}")
    took = time.monotonic() - begin
    head = run.head()
    run.await_version(head + 2, BOUND_S)
    said = run.log("w0")[logged:]
    if "a rank is lost" not in said:
        complaints.append(f"{what} of rank {rank}: the supervisor says nothing of a lost rank")
    if sign == signal.SIGKILL and not ('"rank":%d' % rank in said and "killed by signal 9" in said):
        complaints.append(f"{what} of rank {rank}: neither the rank nor the cause is named")
    if sign == signal.SIGSTOP and not ('"rank":%d' % rank in said and "did not answer the others" in said):
        complaints.append(f"{what} of rank {rank}: the frozen rank is not named: {said[-1500:]}")
    print(f"{what} of rank {rank}: new processes after {took:.1f} s")


def measure_with(kills, seed, overlapped):
    def measure(folder, programs):
        tokens = tokenize_foxes(programs, folder)
        run = IslandRun(folder / "run", programs, config() + (OVERLAPPED if overlapped else ""))
        chance = random.Random(seed)
        complaints = []
        try:
            run.start_coordinator()
            island = run.start_island("w0", tokens, 2, "--rank-timeout", str(TIMEOUT_S), "--max-restarts", str(4 * kills + 8))
            run.await_version(2)
            for rank in (0, 1):
                for _ in range(kills):
                    time.sleep(chance.uniform(0, 3))
                    lose(run, complaints, rank, signal.SIGKILL, "kill")
            for rank in (0, 1):
                lose(run, complaints, rank, signal.SIGSTOP, "freeze")
            run.check_counts(complaints, "w0", 2, overlapped)
            if "goes on with the state it kept" not in run.log("w0"):
                complaints.append("no life went on with the saved state")
            island.terminate()
            code = island.wait(60)
            if code != 0:
                complaints.append(f"after SIGTERM the supervisor exits with {code}: {run.worker_log_end('w0')}")
            if run.ranks("w0"):
                complaints.append("a rank outlives its supervisor")
        finally:
            run.kill_all()
        return complaints
    return measure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=2, help="of each rank")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--overlapped", action="store_true", help="exchanges run beside the steps (sync.mode)")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    given = parser.parse_args()
    sys.exit(judge("atoll-lost-rank-", given, measure_with(given.kills, given.seed, given.overlapped)))
