#!/usr/bin/env python3
"""What round.staleness_limit costs or gains: real runs with a worker that comes late, always or now and then.

Four workers train at equal tokens; the last one is stopped (SIGSTOP) for most of the time, so that it takes about two rounds
for each of the others', and rounds close without it (quorum). With limit 0 its contributions are refused, and error feedback
carries them into its next push; above 0 they are folded into the open round with weight / (1 + versions / 4). Every seed is
run with every limit; the table gives the validation loss after the same number of committed tokens, what was refused and what
was folded late.

With --come-and-go the rounds wait for everybody (quorum 1), and the last worker is killed and started again all the time: what
comes late is a joiner's first contribution.

    bench/staleness.py --text FILE --bin build/release/bin --seeds 1,2,3
    bench/staleness.py --text FILE --bin build/release/bin --seeds 1,2,3 --come-and-go 2
"""
import argparse
import collections
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/integration"))
from real_run import RealRun, tokenize  # noqa: E402

CONFIG = """run: {{name: staleness, workers: 4, rounds: {rounds}, seed: {seed}}}
model: {{gpt: {{layers: 2, heads: 2, width: 64, context: 32, vocabulary: 256}}}}
data: {{tokenizer: bytes, partitions: 4}}
inner: {{steps: {steps}, learning_rate: 0.003, warmup_steps: 40, batch: 8}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.9}}
round: {{deadline_s: 60, quorum: {quorum}, grace: fixed, grace_s: 0, lease_s: 1, staleness_limit: {limit}}}
codec: {{push: {codec}}}
evaluation: {{every: 0, batches: 40}}
checkpoint: {{shards: 1}}
"""


def slow_down(run, over, share):
    """Stops w3 for `share` of the time until it ends or `over` is set."""
    pid = int(re.findall(r"w3 started \(process (\d+)", (run.folder / "coordinator.log").read_text())[-1])
    descriptor = os.pidfd_open(pid)
    try:
        while not over.is_set():
            signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
            time.sleep(0.2 * share)
            signal.pidfd_send_signal(descriptor, signal.SIGCONT)
            over.wait(0.2 * (1 - share))
    except ProcessLookupError:
        pass


def come_and_go(run, over, seconds):
    while not over.wait(seconds):
        pid = int(re.findall(r"w3 started \(process (\d+)", (run.folder / "coordinator.log").read_text())[-1])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it is just being started


def one(arguments, tokens, limit, seed):
    with tempfile.TemporaryDirectory(prefix="atoll-staleness-") as folder:
        run = RealRun(folder, arguments.bin.resolve(), CONFIG.format(
            rounds=arguments.rounds, steps=arguments.steps, seed=seed, limit=limit, codec=arguments.codec,
            quorum=1 if arguments.come_and_go else 0.75))
        over, begun = threading.Event(), time.monotonic()
        try:
            run.launch(arguments.bin.resolve() / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])
            run.wait_for(lambda: run.head() >= 1, 120, "version 1")
            thread = threading.Thread(target=come_and_go, args=(run, over, arguments.come_and_go)) if arguments.come_and_go else \
                threading.Thread(target=slow_down, args=(run, over, arguments.stopped))
            thread.start()
            evaluated = lambda: int(run.status()["evaluations"][-1]["version"]) == run.head()
            run.wait_for(lambda: run.status()["state"] == "RUN_STATE_FINISHED" and evaluated(), 280, "the end")
            over.set()
            thread.join()
            refused = collections.Counter(e["worker"] for e in run.events() if e["kind"] == "CONTRIBUTION_REFUSED")
            late = sum(point["value"] > 0 for point in run.metrics() if point["name"] == "worker/late_versions")
            counted = sum(point["value"] for point in run.metrics() if point["name"] == "round/contributions")
            return {"loss": float(run.status()["evaluations"][-1]["loss"]), "versions": run.head(), "refused": refused["w3"],
                    "late": late, "counted": counted, "seconds": time.monotonic() - begun}
        finally:
            over.set()
            run.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--limits", default="0,1,2")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--codec", default="fp32")
    parser.add_argument("--come-and-go", type=float, default=0, metavar="SECONDS", help="kill the last worker so often instead")
    parser.add_argument("--stopped", type=float, default=0.6, help="share of the time for which the slow worker is stopped")
    arguments = parser.parse_args()
    results = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="atoll-staleness-") as folder:
        tokens = tokenize(arguments.bin.resolve(), arguments.text, pathlib.Path(folder) / "tokens")
        for seed in arguments.seeds.split(","):
            for limit in arguments.limits.split(","):
                results[limit].append(one(arguments, tokens, limit, seed))
                print(f"seed {seed}, limit {limit}: {results[limit][-1]}", file=sys.stderr, flush=True)
    print("| limit | seeds | validation loss | against limit 0 | refused | folded late | versions |\n|---|---|---|---|---|---|---|")
    base = results[arguments.limits.split(",")[0]]
    for limit, runs in results.items():
        mean = lambda key, of=runs: statistics.mean(r[key] for r in of)
        pairs = [100 * (a["loss"] / b["loss"] - 1) for a, b in zip(runs, base)]
        spread = f" ± {statistics.stdev(pairs) / len(pairs) ** 0.5:.2f}" if len(pairs) > 1 else ""
        print(f"| {limit} | {len(runs)} | {mean('loss'):.4f} | {statistics.mean(pairs):+.2f} %{spread} | {mean('refused'):.1f} | "
              f"{mean('late'):.1f} | {mean('versions'):.1f} |")


if __name__ == "__main__":
    main()
