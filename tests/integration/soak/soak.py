#!/usr/bin/env python3
"""Everything that atollctl can do, to a run of eight real workers, among kills, freezes and restarts, for half an hour.

Six workers are processes of this script, so that they outlive the coordinator; two are the launcher's. All the time one of
the faults of `faults.py` happens, and one of the commands of `repertoire.py` is given. It must show:
  no worker ends that was not told to, or killed, the launcher's included; who was told to says with its exit code that it
  drained or was banned;
  a coordinator that is told to end ends with 0, and every one that is started again serves;
  nothing acknowledged is lost: every contribution that the coordinator's log calls accepted is in the record of its round or,
  when it came late, of the next, also when its worker was killed, evicted or banned since (only a restore drops those of the
  rounds that it takes back), and `atollctl verify` recomputes every version;
  no round is open for longer than its deadline, times of pause and absence left out;
  every command that `atollctl --help` names worked, the head never went back, and the run stops when it is told to.
Of so many versions as the run has in half an hour not all are kept: now and then it is paused, and what is there is looked at.

Usage: soak.py --bin DIR [--minutes M | --short] [--seed N] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import collections
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from besieged import Besieged, DEADLINE_S, STALENESS  # noqa: E402
from faults import Faults  # noqa: E402
from real_run import judge, tokenize  # noqa: E402
from repertoire import Repertoire  # noqa: E402
import trail  # noqa: E402

SHORT_S, LONG_S = 60, 1800
KEPT = 1000  # versions
LOOK_S = 10  # how often it is asked whether it is time to take stock
COMPLETE_WITHIN_S = 150  # a short form, too, gives every command once: on a loaded machine it takes longer
CONFIG = f"""run: {{name: soak, workers: 8, rounds: 100000, seed: 7}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes, partitions: 24}}
inner: {{steps: 30, learning_rate: 0.002, warmup_steps: 20, batch: 2}}
outer: {{optimizer: nesterov, learning_rate: 0.5, momentum: 0.5}}
round: {{deadline_s: {DEADLINE_S}, quorum: 0.5, grace_s: 0.5, lease_s: 3, minimum: 1, staleness_limit: {STALENESS}}}
evaluation: {{every: 20, batches: 4}}
checkpoint: {{shards: 1, keep_versions: {KEPT}}}
"""


def take_stock(run, records, complaints):
    """What the kept versions are made of, and that each can be recomputed, while the run is paused."""
    begin = time.time()
    paused = run.ctl("run", "pause", "--reason", "stocktaking") is not None
    records.take(run)
    if not paused or run.ctl("run", "resume") is None:
        complaints.append(f"the run cannot be paused and resumed: {run.complaint}")
    run.absences.append((begin, time.time() + 1))


def loop(run, arguments, records, complaints):
    """Until the time is up or something is wrong; the repertoire and the faults with what they did."""
    rng = random.Random(arguments.seed)
    faults, repertoire = Faults(run, rng), Repertoire(run, rng)
    until = time.monotonic() + arguments.seconds
    look, stock = time.monotonic() + LOOK_S, 0
    while (time.monotonic() < until or not repertoire.complete()) and time.monotonic() < until + COMPLETE_WITHIN_S:
        faults.tick()
        run.look(complaints)
        repertoire.tick()
        run.look(complaints)
        if time.monotonic() > look:
            head = run.head()
            if head > stock + KEPT * 0.6:
                faults.finish_all()
                take_stock(run, records, complaints)
                stock = head
            look = time.monotonic() + LOOK_S
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
        records = trail.Records()
        faults, repertoire = loop(run, arguments, records, complaints)
        if not complaints:
            run.settle(complaints)
            run.stop_run(complaints)
            records.take(run)
            complaints += records.complaints(run)
            if arguments.seconds >= SHORT_S:
                complaints += repertoire.complaints()
            run.end(complaints)
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
