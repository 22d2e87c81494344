#!/usr/bin/env python3
"""How many ranks a coordinator takes in one worker: 8 without --max-ranks, and not 9.

It must show: an island of 8 ranks joins, is described as such, and each of its contributions counts once with the tokens of all
ranks. An island of 9 exits with code 2 and a message that names both numbers and the option; it becomes no member, keeps no
state, is not started again, and the run goes on.

Usage: most_ranks.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import sys

from island_run import IslandRun, config, run_as_test, tokenize_foxes

MOST = 8  # of --max-ranks, docs/reference/islands.md
PATIENCE_S = 120


def the_most_join(run, tokens, complaints):
    run.start_island("most", tokens, MOST)
    run.await_version(2, PATIENCE_S)
    described = run.ctl("workers", "describe", "most") or run.complaint
    if f"{MOST} ranks" not in described:
        complaints.append(f"atollctl does not show the {MOST} ranks: {described}")
    if len(run.ranks("most")) != MOST:
        complaints.append(f"{len(run.ranks('most'))} ranks train, expected {MOST}")
    said = [event["message"] for event in run.events()]
    if not any(f"with {MOST} ranks" in text for text in said):
        complaints.append(f"no event names the {MOST} ranks: {said}")


def one_more_is_rejected(run, tokens, complaints):
    process = run.start_island("more", tokens, MOST + 1)
    code = process.wait(PATIENCE_S)
    said = run.log("more")
    wanted = (f"has {MOST + 1} ranks, and this coordinator takes at most {MOST} in one worker", f"--max-ranks {MOST + 1}")
    missing = [words for words in wanted if words not in said]
    if code != 2 or missing:
        complaints.append(f"{MOST + 1} ranks: exit code {code} (expected 2), without {missing}: {said[-1500:]}")
    if "a rank is lost" in said:
        complaints.append(f"the rejected ranks were started again: {said[-1500:]}")
    if not any(event["kind"] == "JOIN_REFUSED" and wanted[0] in event["message"] for event in run.events()):
        complaints.append("no event tells the operator of the rejected island")
    if "more" in (run.workers() or {}):
        complaints.append("the rejected island is a member")
    kept = list((run.folder / "state-more").rglob("round-*"))
    if kept:
        complaints.append(f"the rejected island has kept {kept}")


def measure(folder, programs):
    run = IslandRun(folder / "run", programs, config())
    tokens, complaints = tokenize_foxes(programs, folder), []
    try:
        run.start_coordinator()
        the_most_join(run, tokens, complaints)
        one_more_is_rejected(run, tokens, complaints)
        run.await_version(run.head() + 1, PATIENCE_S)
        run.check_counts(complaints, "most", MOST)
        island = run.workers_by_name["most"]
        island.terminate()
        code = island.wait(PATIENCE_S)
        if code != 0:
            complaints.append(f"after SIGTERM the island of {MOST} ranks exits with {code}: {run.worker_log_end('most')}")
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-most-ranks-", __doc__, measure))
