#!/usr/bin/env python3
"""A run of real programs whose settings an operator changes while it goes on.

Two workers train; in the middle `atollctl config set` changes codec.push from fp32 to int8, inner.steps and
outer.learning_rate at once. It must show, from the round records: the open round keeps the values that it was opened with,
every later one has the new values (payload bytes, steps, outer learning rate), no contribution is lost on the way, the
run finishes with the tokens that were planned, and `atollctl verify` recomputes every version with the values of its round.

Usage: live_settings.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROUNDS, STEPS, BATCH, CONTEXT, WORKERS = 10, 12, 4, 16, 2
CONFIG = f"""run: {{name: live, workers: {WORKERS}, rounds: {ROUNDS}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: {CONTEXT}, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {STEPS}, learning_rate: 0.005, warmup_steps: 10, batch: {BATCH}}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: 60, start_workers: {WORKERS}}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1, keep_versions: 40}}
"""
NEW_STEPS, NEW_RATE = STEPS // 2, 0.25
PATIENCE_S = 180


class Run:
    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        (folder / "run.yaml").write_text(CONFIG)
        (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 3000)
        subprocess.run([programs / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", folder / "tokens",
                        folder / "text"], check=True, capture_output=True, timeout=60)
        arguments = ["--config", folder / "run.yaml", "--data-dir", folder / "data", "--listen", "127.0.0.1:0",
                     "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--port-file", folder / "ports",
                     "--launcher", "process", "--worker-command", programs / "atoll-worker",
                     f"--worker-arg=--data={folder}/tokens", "--worker-arg=--threads=1", "--worker-arg=--device=cpu"]
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        with open(folder / "coordinator.log", "wb") as log:
            # Should this script be killed, the kernel kills the coordinator, and its workers with it.
            self.coordinator = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", programs / "atoll-coordinator", *arguments],
                                                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.wait_for((folder / "ports").exists, "the coordinator to serve")
        ports = json.loads((folder / "ports").read_text())
        self.addresses = ["--admin", ports["admin"], "--coordinator", ports["data"]]

    def wait_for(self, done, what):
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            if self.coordinator.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "coordinator.log").read_text()[-3000:]
                raise RuntimeError(f"waited in vain for {what}: {log}")
            time.sleep(0.05)

    def ctl(self, *arguments):
        done = subprocess.run([self.programs / "atollctl", *self.addresses, *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"atollctl {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.ctl("status", "--json"))

    def head(self):
        return max((int(fragment["version"]) for fragment in self.status().get("fragments", [])), default=0)

    def metrics(self):
        """By name: of each version its value, or the values of its workers."""
        points = collections.defaultdict(lambda: collections.defaultdict(list))
        for line in self.ctl("metrics", "export", "--format", "jsonl").splitlines():
            point = json.loads(line)
            points[point["name"]][int(point["version"])].append(point["value"])
        return points

    def end(self):
        self.coordinator.terminate()
        try:
            self.coordinator.wait(60)
        except subprocess.TimeoutExpired:
            self.coordinator.kill()
            self.coordinator.wait()


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


def measure(folder, programs):
    run, complaints = Run(folder, programs), []
    try:
        run.wait_for(lambda: run.head() >= 2, "version 2")
        run.ctl("config", "set", "codec.push=int8", f"inner.steps={NEW_STEPS}", f"outer.learning_rate={NEW_RATE}")
        run.wait_for(lambda: run.status()["state"] == "RUN_STATE_FINISHED", "the end of the run")
        status, metrics = run.status(), run.metrics()
        events = [json.loads(line) for line in run.ctl("events", "--json").splitlines() if line.strip()]
        refused = [event for event in events if "REFUSED" in event.get("kind", "")]
        check(metrics, refused, status, complaints)
        verdicts = collections.Counter(json.loads(line)["verdict"] for line in run.ctl("verify", "--json").splitlines())
        # Only version 0 has no round to be recomputed from.
        if verdicts["EQUAL"] != len(metrics["round/config_version"]) or verdicts["NOT_KEPT"] > 1 or len(verdicts) > 2:
            complaints.append(f"verify says {dict(verdicts)}")
        print(f"{len(metrics['round/config_version'])} versions, {verdicts['EQUAL']} of them recomputed")
    finally:
        run.end()
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    arguments = parser.parse_args()
    programs = arguments.bin.resolve()
    if not all((programs / name).exists() for name in ("atoll-coordinator", "atoll-worker", "atollctl", "atoll-data")):
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-live-"))
    try:
        complaints = measure(folder, programs)
    finally:
        if arguments.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
