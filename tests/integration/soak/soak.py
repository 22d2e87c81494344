#!/usr/bin/env python3
"""Everything that atollctl can do, to a run of eight real workers, among kills, freezes and restarts, for half an hour.

Six workers are processes of this script, so that they outlive the coordinator; two are the launcher's. All the time one of
the faults of `faults.py` happens, and one of the commands of `repertoire.py` is given. It must show:
  no worker ends that was not told to, or killed; who was told to says with its exit code that it drained or was banned;
  a coordinator that is told to end ends with 0, and every one that is started again serves;
  nothing acknowledged is lost: every contribution that the coordinator's log calls accepted is in the record of its round
  (but for those of an evicted worker and of an epoch that was restored away), and `atollctl verify` recomputes every version;
  no round is open for longer than its deadline, times of pause and absence left out;
  every command of the repertoire worked, the head never went back, and the run stops when it is told to.

Usage: soak.py --bin DIR [--minutes M | --short] [--seed N] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import collections
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from besieged import Besieged, DEADLINE_S  # noqa: E402
from faults import Faults  # noqa: E402
from real_run import judge, tokenize  # noqa: E402
from repertoire import Repertoire  # noqa: E402
import trail  # noqa: E402

SHORT_S, LONG_S = 60, 1800
CONFIG = f"""run: {{name: soak, workers: 8, rounds: 100000, seed: 7}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes, partitions: 24}}
inner: {{steps: 10, learning_rate: 0.002, warmup_steps: 20, batch: 2}}
outer: {{optimizer: nesterov, learning_rate: 0.5, momentum: 0.5}}
round: {{deadline_s: {DEADLINE_S}, quorum: 0.5, grace_s: 0.5, lease_s: 3, minimum: 1}}
evaluation: {{every: 20, batches: 4}}
checkpoint: {{shards: 1, keep_versions: 1000}}
"""


def loop(run, arguments, complaints):
    """Until the time is up or something is wrong; the repertoire and the faults with what they did."""
    rng = random.Random(arguments.seed)
    faults, repertoire = Faults(run, rng), Repertoire(run, rng)
    until = time.monotonic() + arguments.seconds
    # A short form, too, has every command in it once.
    while (time.monotonic() < until or not repertoire.complete()) and time.monotonic() < until + 60:
        faults.tick()
        run.look(complaints)
        repertoire.tick()
        run.look(complaints)
        if complaints:
            break
        time.sleep(0.05)
    faults.finish_all()
    return faults, repertoire


def measure(folder, programs, arguments):
    complaints = []
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 6000)
    tokens = tokenize(programs, folder / "text", folder / "tokens")
    run = Besieged(folder, programs, CONFIG, tokens)
    try:
        run.begin()
        faults, repertoire = loop(run, arguments, complaints)
        if not complaints:
            run.settle(complaints)
            records = trail.Records(run)
            complaints += records.complaints(run)
            if arguments.seconds >= SHORT_S:
                complaints += repertoire.complaints()
            run.end_all(complaints)
            kinds = collections.Counter(kind for kind, _ in faults.done)
            print(f"faults    {sum(kinds.values())}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
            print(f"commands  {sum(repertoire.worked.values())}: " +
                  ", ".join(f"{n} {name}" for name, n in sorted(repertoire.worked.items())))
            print(records.summary())
    finally:
        run.kill_all()
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float)
    length.add_argument("--short", action="store_true", help=f"{SHORT_S} s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    arguments = parser.parse_args()
    arguments.seconds = SHORT_S if arguments.short else arguments.minutes * 60 if arguments.minutes else LONG_S
    return judge("atoll-soak-", arguments, lambda folder, programs: measure(folder, programs, arguments))


if __name__ == "__main__":
    sys.exit(main())
