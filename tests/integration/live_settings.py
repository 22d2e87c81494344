#!/usr/bin/env python3
"""A run of real programs whose settings an operator changes while it goes on.

Two workers train; in the middle `atollctl config set` changes codec.push from fp32 to int8, inner.steps and
outer.learning_rate at once. It must show, from the round records: the open round keeps the values that it was opened with,
every later one has the new values (payload bytes, steps, outer learning rate), no contribution is lost on the way, the
run finishes with the tokens that were planned, and `atollctl verify` recomputes every version with the values of its round.

Then runs of several fragments, blocking and overlapped, whose codec.push is changed again and again, also while all workers
are killed and started: every fragment goes on. In the blocking run no push is refused for its codec; in the overlapped one a late
push may be, when the codec has changed twice since its base.

Usage: live_settings.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import collections
import sys

from real_run import RealRun, run_as_test, tokenize_foxes

ROUNDS, STEPS, BATCH, CONTEXT, WORKERS = 10, 12, 4, 16, 2
CONFIG = f"""run: {{name: live, workers: {WORKERS}, rounds: {ROUNDS}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: {CONTEXT}, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {STEPS}, learning_rate: 0.005, warmup_steps: 10, batch: {BATCH}}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: 60, start_workers: {WORKERS}}}
codec: {{push: fp32, pull_delta: none}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1, keep_versions: 40}}
"""
NEW_STEPS, NEW_RATE = STEPS // 2, 0.25
CHANGES = 12
PATIENCE_S = 180


def by_version(points):
    """By name: of each version its value, or the values of its workers."""
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    for point in points:
        values[point["name"]][int(point["version"])].append(point["value"])
    return values


def check(metrics, refused, status, complaints):
    config = {version: int(values[0]) for version, values in metrics["round/config_version"].items()}
    old = [version for version, number in config.items() if number == 1]
    new = [version for version, number in config.items() if number == 2]
    if not old or not new or max(old) > min(new) or len(old) + len(new) != len(config):
        complaints.append(f"the rounds did not pass once from configuration 1 to 2: {config}")
        return
    parameter_bytes = metrics["round/payload_bytes"][min(old)][0] / WORKERS
    for version in sorted(config):
        is_new = version in new
        seen = {name: metrics[name][version] for name in ("outer/learning_rate", "worker/steps", "round/payload_bytes",
                                                          "round/contributions")}
        want_rate, want_steps = (NEW_RATE, NEW_STEPS) if is_new else (0.7, STEPS)
        if seen["outer/learning_rate"] != [want_rate] or set(seen["worker/steps"]) != {want_steps}:
            complaints.append(f"version {version} was not made with outer rate {want_rate} and {want_steps} steps: {seen}")
        each = seen["round/payload_bytes"][0] / seen["round/contributions"][0] / parameter_bytes
        # int8 has one byte and a share of a scale where float32 has four.
        if not (0.24 < each < 0.30 if is_new else each == 1):
            complaints.append(f"version {version}: a contribution is {each:.3f} of one in float32: {seen}")
    if refused:
        complaints.append(f"contributions were refused: {refused}")
    tokens, planned = int(status["committed_tokens"]), WORKERS * ROUNDS * STEPS * BATCH * CONTEXT
    if not planned <= tokens < planned + WORKERS * STEPS * BATCH * CONTEXT:
        complaints.append(f"{tokens} tokens were committed, {planned} were planned")


def behind(run):
    """The version of the fragment that is furthest behind."""
    fragments = (run.status() or {}).get("fragments", [])
    return min((int(fragment["version"]) for fragment in fragments), default=0)


def change_codecs(folder, programs, tokens, sync, complaints):
    config = (CONFIG.replace(f"rounds: {ROUNDS}", "rounds: 100000").replace("deadline_s: 60", "deadline_s: 20, lease_s: 5")
              + f"sync: {sync}\n")
    folder.mkdir()
    run = RealRun(folder, programs, config)
    try:
        run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])
        run.wait_for(lambda: behind(run) >= 2, PATIENCE_S, "version 2 of every fragment")
        for change in range(CHANGES):
            codec, before = ("fp16", "int8", "bf16")[change % 3], behind(run)
            if run.ctl("config", "set", f"codec.push={codec}") is None:
                raise RuntimeError(f"atollctl config set failed: {run.complaint}")
            if change % 4 == 3:  # lives that know only the newest configuration, in a round of the one before
                for worker in run.workers():
                    run.ctl("workers", "evict", worker)
            # Without a wait for the round: two changes may come in one.
            run.wait_for(lambda: behind(run) >= before + change % 3, PATIENCE_S,
                         f"every fragment's version {before + change % 3}, after change {change + 1} to {codec} with sync {sync}")
        last = behind(run)
        run.wait_for(lambda: behind(run) >= last + 2, PATIENCE_S, f"two more versions of every fragment with sync {sync}")
        for log in folder.rglob("*.log") if "blocking" in sync else []:
            complaints += [f"{sync}: {line[:300]}" for line in log.read_text(errors="replace").splitlines() if "pushes with codec" in line]
        print(f"sync {sync}: {CHANGES} changes of codec.push, every fragment at version {behind(run)} or above")
    finally:
        run.end()


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    measure_one_change(folder, programs, tokens, complaints)
    for name, sync in (("blocking", "{mode: blocking, fragments: 3}"), ("overlapped", "{mode: overlapped, fragments: 3, delay_steps: 2}")):
        change_codecs(folder / name, programs, tokens, sync, complaints)
    return complaints


def measure_one_change(folder, programs, tokens, complaints):
    run = RealRun(folder, programs, CONFIG)
    try:
        run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])
        run.wait_for(lambda: run.head() >= 2, PATIENCE_S, "version 2")
        if run.ctl("config", "set", "codec.push=int8", f"inner.steps={NEW_STEPS}", f"outer.learning_rate={NEW_RATE}") is None:
            raise RuntimeError(f"atollctl config set failed: {run.complaint}")
        run.wait_for(lambda: run.status()["state"] == "RUN_STATE_FINISHED", PATIENCE_S, "the end of the run")
        status, metrics = run.status(), by_version(run.metrics())
        refused = [event for event in run.events() if "REFUSED" in event.get("kind", "")]
        check(metrics, refused, status, complaints)
        verdicts = collections.Counter(line["verdict"] for line in run.lines("verify", "--json"))
        # Only version 0 has no round to be recomputed from.
        if verdicts["EQUAL"] != len(metrics["round/config_version"]) or verdicts["NOT_KEPT"] > 1 or len(verdicts) > 2:
            complaints.append(f"verify says {dict(verdicts)}")
        print(f"{len(metrics['round/config_version'])} versions, {verdicts['EQUAL']} of them recomputed")
    finally:
        run.end()


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-live-", __doc__, measure))
