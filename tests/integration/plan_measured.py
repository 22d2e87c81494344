#!/usr/bin/env python3
"""What `atollctl plan` says of a run, against the run: real workers behind a link of a known bandwidth and latency.

Blocking, overlapped, and overlapped on a link that is too thin for it; two workers each, one of which evaluates. `plan` is given the
link, and what one inner step and one batch of an evaluation take, as the workers themselves measured it. The time of a round and the
utilisation that it prints must be within 10 % of the run's, and a worker's memory within 10 % of its process's.

`plan` assumes workers of one speed. Where something else on the machine makes one of them slower than the other, the run does not
show what was planned; such a run is measured again.

Usage: plan_measured.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import json
import subprocess
import sys
import time

from real_run import run_as_test, tokenize_foxes
from shaped_run import ShapedRun, between, by_use, scrape

WORKERS = ("w0", "w1")
STEPS, EVERY, BATCHES = 24, 2, 12
MODEL = "{layers: 2, heads: 4, width: 192, context: 32, vocabulary: 256}"
CONFIG = f"""run: {{{{name: {{name}}, workers: {len(WORKERS)}, rounds: 100000, seed: 3}}}}
model: {{{{gpt: {MODEL.replace('{', '{{').replace('}', '}}')}}}}}
data: {{{{tokenizer: bytes, partitions: 2}}}}
inner: {{{{steps: {STEPS}, learning_rate: 0.001, batch: 8}}}}
round: {{{{deadline_s: 600, start_workers: {len(WORKERS)}}}}}
evaluation: {{{{every: {EVERY}, batches: {BATCHES}}}}}
codec: {{{{push: int8, pull: bf16, pull_delta: none}}}}
checkpoint: {{{{shards: 1}}}}
sync: {{{{mode: {{sync}}}}}}
"""
OVERLAP = "overlapped, fragments: 2, pattern: strided, delay_steps: 10"
DELAY_MS = 10
# Name -> (sync, Mbit/s, versions to begin at, versions to measure: whole periods of evaluations).
CASES = {"blocking": ("blocking", 40, EVERY, 3 * EVERY), "overlapped": (OVERLAP, 200, 2 * EVERY, 5 * EVERY),
         "starved": (OVERLAP, 16, EVERY, 4 * EVERY)}
BOUND = 0.1
# Of the workers' steps: the slower one's over the faster one's. At most 1.06 in two runs on an idle machine, 1.47 beside a busy process.
EQUAL = 1.1
ATTEMPTS = 4


def look(run):
    samples = {name: scrape(run.endpoint(name)) for name in WORKERS}
    return {"at": time.monotonic(),
            "spent": {name: by_use(samples[name], "atoll_worker_training_time_seconds_total") for name in WORKERS},
            "steps": {name: samples[name][("atoll_worker_inner_steps_total", ())] for name in WORKERS},
            "evaluating": sum(samples[name][("atoll_worker_evaluate_seconds_total", ())] for name in WORKERS),
            "bytes": {name: samples[name][("process_resident_memory_bytes", ())] for name in WORKERS}}


def measure_one(folder, programs, tokens, name):
    """The run's figures: seconds of a round, utilisation, and what one step and one batch took."""
    sync, megabits, first, rounds = CASES[name]
    with ShapedRun(folder, programs, CONFIG.format(name=name, sync=sync)) as run:
        run.start(tokens, WORKERS, megabits, DELAY_MS)
        run.wait_for(lambda: run.head() >= first, 90, f"version {first}")
        before, version = look(run), run.head()
        run.wait_for(lambda: run.head() >= version + rounds, 120, f"version {version + rounds}")
        after = look(run)
        made = run.head() - version
        evaluations = [e for e in (run.status(history=1000) or {}).get("evaluations", [])
                       if version <= int(e["version"]) < version + made]
    spent = {w: between(before["spent"][w], after["spent"][w]) for w in WORKERS}
    steps = {w: after["steps"][w] - before["steps"][w] for w in WORKERS}
    inner = {w: s["compute"] + s["overdue"] + s["data"] for w, s in spent.items()}
    by_worker = [inner[w] / steps[w] for w in WORKERS]
    return {"round_s": (after["at"] - before["at"]) / made,
            "utilisation": sum(s["compute"] for s in spent.values()) / sum(sum(s.values()) for s in spent.values()),
            "step_ms": 1000 * sum(inner.values()) / sum(steps.values()), "apart": max(by_worker) / min(by_worker),
            "batch_ms": 1000 * (after["evaluating"] - before["evaluating"]) / max(1, len(evaluations)) / BATCHES,
            "bytes": max(after["bytes"].values()), "rounds": made,
            "spent": {use: sum(spent[w][use] for w in WORKERS) for use in spent[WORKERS[0]]}}


def measure_equal(folder, programs, tokens, name):
    """The same, of a run whose workers were equally fast; of the last attempt when none were."""
    for attempt in range(ATTEMPTS):
        seen = measure_one(folder / f"{name}-{attempt}", programs, tokens, name)
        if seen["apart"] <= EQUAL:
            break
        print(f"{name}: a step takes one worker {seen['apart']:.2f} times as long as the other; something else runs on this machine",
              flush=True)
    return seen


def planned(folder, programs, name, seen):
    command = [programs / "atollctl", "--json", "plan", folder / f"{name}-0" / "run.yaml", "--bandwidth", f"{CASES[name][1]}Mbit/s",
               "--latency", f"{2 * DELAY_MS}ms", "--step-ms", f"{seen['step_ms']:.3f}", "--evaluation-batch-ms",
               f"{seen['batch_ms']:.3f}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout)


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    for name in CASES:
        seen = measure_equal(folder, programs, tokens, name)
        plan = planned(folder, programs, name, seen)
        pairs = {"seconds of a round": (plan["round_seconds"]["round"], seen["round_s"]),
                 "utilisation": (plan["round_seconds"]["utilisation"], seen["utilisation"]),
                 "memory of a worker": (plan["worker_memory"]["total"], seen["bytes"])}
        print(f"{name}, {seen['rounds']} rounds, a step {seen['step_ms']:.1f} ms, a batch {seen['batch_ms']:.1f} ms: " +
              "; ".join(f"{what} planned {p:.4g}, seen {s:.4g} ({100 * (p / s - 1):+.1f} %)" for what, (p, s) in pairs.items()))
        print("  ", {use: round(value, 2) for use, value in seen["spent"].items() if value > 0.01},
              {key: round(value, 3) for key, value in plan["round_seconds"].items() if isinstance(value, float)}, flush=True)
        complaints += [f"{name}: {what} was planned as {p:.4g} and is {s:.4g}"
                       for what, (p, s) in pairs.items() if abs(p / s - 1) > BOUND]
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-plan-", __doc__, measure))
