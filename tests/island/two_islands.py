#!/usr/bin/env python3
"""Two islands of two ranks in one run learn what two workers with twice the batch learn: four workers' worth of data.

Both runs have the same seed, so that the same sequences are in the same steps, and 20 rounds. They differ by the rounding of sums in
another order, which grows. The outer step is a small one: with the default of 0.7 and momentum 0.9 a model this small is thrown far
enough between its first versions that the last bit of a learning rate moves the loss of version 20 by 8 % (measured); with 0.3 and 0.5
the two runs differ by less than 1e-5 at version 3 and by 4e-4 to 2e-3 at version 20. It must show: the losses of the first three versions
agree to 0.01 % and that of the last to 1 %, both runs count the same tokens, and `atollctl` shows the ranks.

Usage: two_islands.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import pathlib
import random
import sys

from island_run import BATCH, CONTEXT, STEPS, IslandRun, config, run_as_test, tokenize

ROUNDS = 20
EARLY = (1, 2, 3)


def train(run, tokens, ranks):
    run.start_coordinator()
    for name in ("w0", "w1"):
        run.start_island(name, tokens, ranks)
    run.wait_for(lambda: len(run.workers() or {}) == 2, 120, "both workers")
    described = run.ctl("workers", "describe", "w0") or run.complaint
    run.await_version(ROUNDS, 300)
    points = [p for p in run.metrics() if p["name"] == "validation/loss"]
    losses = {int(p["version"]): float(p["value"]) for p in points}
    counted = sum(sum(of_version) for name in ("w0", "w1") for version, of_version in run.tokens_by_version(name).items()
                  if version <= ROUNDS)
    return losses, counted, described


def measure(folder, programs):
    # A text that stays: on some texts the rounding grows a hundred times faster.
    words = (pathlib.Path(__file__).parent.parent.parent / "LICENSE").read_text().split()
    (folder / "text").write_text(" ".join(random.Random(3).choices(words, k=100000)))
    tokens = tokenize(programs, folder / "text", folder / "tokens")
    complaints, found = [], {}
    for what, ranks, batch in (("islands", 2, BATCH), ("workers", 1, 2 * BATCH)):
        # The schedule counts tokens: the same learning rates need a plan of as many tokens.
        text = config(2, 1000 * ranks, batch).replace("round: {", "round: {start_workers: 2, ")
        # As many parts as workers: which worker reads a free part depends on who asks first.
        text = text.replace("partitions: 4", "partitions: 2")
        text = text.replace("every: 5, batches: 4", f"every: 1, batches: {256 // batch}")
        text += "outer: {learning_rate: 0.3, momentum: 0.5}\n"
        run = IslandRun(folder / what, programs, text)
        try:
            found[what] = train(run, tokens, ranks)
        finally:
            run.kill_all()
    of_islands, of_workers = found["islands"], found["workers"]
    if of_islands[1] != of_workers[1] or of_islands[1] != 2 * ROUNDS * STEPS * 2 * BATCH * CONTEXT:
        complaints.append(f"the islands count {of_islands[1]} tokens, the workers {of_workers[1]}")
    common = sorted(set(of_islands[0]) & set(of_workers[0]))
    if not common:
        complaints.append(f"no version was evaluated in both runs: {sorted(of_islands[0])}, {sorted(of_workers[0])}")
    for version in (*EARLY, common[-1] if common else 0):
        if version not in common:
            complaints.append(f"version {version} was not evaluated in both runs: {common}")
            continue
        one, other = of_islands[0][version], of_workers[0][version]
        print(f"version {version}: islands {one:.5f}, workers {other:.5f}; {of_islands[1]} tokens")
        if abs(one - other) > (0.0001 if version in EARLY else 0.01) * other:
            complaints.append(f"the loss of version {version} is {one} with islands and {other} with workers")
    if "2 ranks" not in of_islands[2]:
        complaints.append(f"describe does not show the ranks: {of_islands[2]}")
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-two-islands-", __doc__, measure))
