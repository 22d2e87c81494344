#!/usr/bin/env python3
"""The number of ranks changes between two lives of a worker: 1, 2, 3 and 1 again.

Each life ends with SIGTERM, which drains the worker, and the next one has the same state directory. It must show: every life
but the first goes on with the state that the one before saved, each contribution counts with the tokens of its ranks, and each rank says once
on which device it computes. Then the same in overlapped mode.

Usage: lives.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import json
import sys

from island_run import BATCH, CONTEXT, OVERLAPPED, STEPS, IslandRun, config, run_as_test, tokenize_foxes


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    return lives(folder / "blocking", programs, tokens, config()) + lives(folder / "overlapped", programs, tokens, config() + OVERLAPPED)


def device_complaints(said, ranks, described):
    """Each rank names its device once, as `workers describe` does."""
    start = "computes on "
    lines = [json.loads(line) for line in said.splitlines() if f'"message":"{start}' in line]
    devices = {line["message"].removeprefix(start) for line in lines}
    facts = sorted((line.get("rank", 0), line["threads"], line["precision"], line["ranks"]) for line in lines)
    if facts == [(rank, 1, "fp32", ranks) for rank in range(ranks)] and len(devices) == 1 and f" {devices.pop()}, " in described:
        return []
    return [f"each of {ranks} ranks must name its device once, as describe does: {lines}; {described}"]


def lives(folder, programs, tokens, text):
    run = IslandRun(folder, programs, text)
    complaints = []
    ranks_of_version = {}
    try:
        run.start_coordinator()
        for life, ranks in enumerate((1, 2, 3, 1)):
            begin, logged = run.head(), len(run.log("w0"))
            worker = run.start_island("w0", tokens, ranks)
            run.await_version(begin + 3)
            described = run.ctl("workers", "describe", "w0") or run.complaint
            worker.terminate()
            code = worker.wait(60)
            said = run.log("w0")[logged:]
            if code != 0:
                complaints.append(f"life {life} with {ranks} ranks ends with {code}: {said[-1500:]}")
            if life > 0 and "goes on with the state it kept" not in said:
                complaints.append(f"life {life} with {ranks} ranks does not go on with the saved state: {said[-1500:]}")
            complaints += device_complaints(said, ranks, described)
            end = run.head()
            ranks_of_version.update({version: ranks for version in range(begin + 1, end + 1)})
        for version, counted in run.tokens_by_version("w0").items() if text == config() else ():
            whole = STEPS * BATCH * CONTEXT * ranks_of_version[version]
            # The last contribution of a life may be of a part of its steps.
            if len(counted) != 1 or counted[0] > whole or counted[0] % (BATCH * CONTEXT * ranks_of_version[version]):
                complaints.append(f"version {version} counts {counted}, of at most {whole} tokens")
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-lives-", __doc__, measure))
