#!/usr/bin/env python3
"""Two real workers; one of them reaches the coordinator through a proxy that serves it parameters of its own (lying_proxy.py).

It must show: both workers stop with exit code 9 and name who signed what; a forged confirmation, and with --peer-keys an
invented key, stop the worker that is shown them; behind a proxy that does not lie nobody stops, and the signatures of the run check out offline,
until one byte of the export is changed. A worker whose question is never answered keeps its lease.

Usage: lying_coordinator.py --bin DIR [--ways honest,open,forge,invent,hang] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs or Python modules are not there.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from real_run import RealRun, judge, tokenize  # noqa: E402  (it lies one folder up)

try:
    from lying_proxy import LyingProxy
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh installs python3-grpcio, python3-protobuf, python3-xxhash)")
    sys.exit(77)

UNTRUSTED = 9
PATIENCE_S = 60
CONFIG = """run: {name: lies, workers: 2, rounds: 100000, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes, mode: local}
inner: {steps: 20, learning_rate: 0.005, warmup_steps: 10, batch: 4}
outer: {optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}
codec: {push: fp32, pull: fp32, pull_delta: none, zstd: false}
round: {deadline_s: 20, grace_s: 1, lease_s: 3, start_workers: 2}
evaluation: {every: 0}
checkpoint: {shards: 1, keep_versions: 50}
"""


class Worker:
    def __init__(self, run, name, address, tokens, more=()):
        self.name, self.log = name, run.folder / f"{name}.log"
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", run.programs / "atoll-worker", "--coordinator", address, "--name", name,
                 "--data", tokens, "--state-dir", run.folder / name, "--threads", "1", "--device", "cpu", *more],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def text(self):
        return self.log.read_text(errors="replace")

    def public_key(self):
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"public_key\W+([0-9a-f]{64})", self.text())):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{self.name} does not tell its key: {self.text()[-500:]}")
            time.sleep(0.05)
        return found.group(1)

    def end(self, seconds):
        """Its exit code; None when it goes on."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def check_stopped(way, workers, said, complaints):
    deadline = time.monotonic() + PATIENCE_S
    for worker in workers:
        code = worker.end(max(1, deadline - time.monotonic()))
        if code != UNTRUSTED:
            what = "still trained" if code is None else f"ended with {code}"
            complaints.append(f"{way}: after {PATIENCE_S} s worker {worker.name} {what}: ...{worker.text()[-600:]}")
            continue
        if not any(words in worker.text() for words in said[worker.name]):
            complaints.append(f"{way}: worker {worker.name} stopped and does not say why: {worker.text()[-600:]}")
        print(f"{way}: {worker.name} stopped: {worker.text().strip().splitlines()[-1][:240]}")


def check_offline(run, complaints):
    """The export of an honest run, and what becomes of it when one byte is changed."""
    export = run.folder / "signed.json"
    if run.ctl("verify", "--confirmations", "--export", str(export)) is None:
        complaints.append(f"honest: verify --confirmations failed: {run.complaint}")
        return
    signed = json.loads(export.read_text())
    by_version = {}
    for one in signed["confirmations"]:
        by_version.setdefault(one["version"], set()).add(one["worker"])
    if not any(workers == {"w0", "w1"} for workers in by_version.values()):
        complaints.append(f"honest: no version was signed by both workers: {by_version}")
        return
    if run.ctl("verify", "--confirmations", "--file", str(export)) is None:
        complaints.append(f"honest: the export does not check out offline: {run.complaint}")
    digits = signed["confirmations"][0]["signature"]
    signed["confirmations"][0]["signature"] = ("0" if digits[0] != "0" else "1") + digits[1:]
    changed = run.folder / "changed.json"
    changed.write_text(json.dumps(signed))
    done = subprocess.run([run.programs / "atollctl", "verify", "--confirmations", "--file", changed], capture_output=True,
                          text=True, timeout=60, check=False)
    if done.returncode != UNTRUSTED or "did not sign" not in done.stderr:
        complaints.append(f"honest: a changed export gives {done.returncode}: {done.stderr}")
    print(f"honest: {len(signed['confirmations'])} signatures of {len(by_version)} versions checked offline; changed: {done.stderr.strip()[:160]}")


def check_lease(run, workers, proxy, complaints):
    """The worker behind the proxy waits for an answer again and again, and stays a member."""
    run.wait_for(lambda: proxy.hung >= 1, PATIENCE_S, "the worker to ask what the others signed")
    # A push or a pull would keep the lease, too: in a long round only heartbeats do.
    if run.ctl("config", "set", "inner.steps=1000000") is None:
        complaints.append(f"hang: {run.complaint}")
    run.wait_for(lambda: all(worker["progress"].get("steps") == 1000000 for worker in run.workers().values()), PATIENCE_S,
                 "the workers to begin a long round")
    before = proxy.hung
    run.wait_for(lambda: proxy.hung >= before + 3, PATIENCE_S, "the worker to ask three times")
    if any(event["kind"] == "WORKER_LOST" for event in run.events()):
        complaints.append(f"hang: a worker lost its lease: ...{workers[1].text()[-600:]}")
    workers[1].process.terminate()
    if workers[1].end(PATIENCE_S) is None:
        complaints.append(f"hang: told to end, the worker goes on: ...{workers[1].text()[-600:]}")
    print(f"hang: {proxy.hung} questions without an answer")


def trial(way, folder, programs, tokens, complaints):
    # A call has 15 s: longer than this lease, and than four of the worker's looks.
    config = CONFIG.replace("lease_s: 3", "lease_s: 9") if way == "hang" else CONFIG
    run, workers, proxy = RealRun(folder, programs, config), [], None
    try:
        run.launch(programs / "atoll-worker", [], workers=0)
        proxy = LyingProxy(run.data, way, folder)
        workers.append(Worker(run, "w0", run.data, tokens))
        more = []
        if way == "invent":
            (folder / "peers").write_text(f"w0 {workers[0].public_key()}\n")
            more = ["--peer-keys", folder / "peers"]
        workers.append(Worker(run, "w1", proxy.address, tokens, more))
        if way == "honest":
            run.wait_for(lambda: all("other workers signed the same parameters" in worker.text() for worker in workers),
                         PATIENCE_S, "the workers to compare")
            if any(worker.end(2) is not None for worker in workers):
                complaints.append(f"honest: a worker stopped: {[worker.text()[-300:] for worker in workers]}")
            check_offline(run, complaints)
            return
        if way == "hang":
            check_lease(run, workers, proxy, complaints)
            return
        differs = ["the coordinator served this worker other parameters"]
        said = {"w0": differs, "w1": {"open": differs, "forge": ["the key beside it did not sign"],
                                      "invent": ["another public key than the one in --peer-keys"]}[way]}
        # A forgery stops the other worker at once, perhaps before two versions differ for this one.
        check_stopped(way, workers if way == "open" else workers[1:], said, complaints)
        if proxy.lies == 0:
            complaints.append(f"{way}: the proxy never lied")
    finally:
        for worker in workers:
            worker.kill()
        if proxy is not None:
            proxy.stop()
        run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--ways", default="honest,open,forge,invent,hang")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the runs")
    arguments = parser.parse_args()

    def measure(folder, programs):
        text = folder / "text"
        text.write_bytes(b"The quick brown fox jumps over the lazy dog. " * 4000)
        tokens, complaints = tokenize(programs, text, folder / "tokens"), []
        for way in arguments.ways.split(","):
            trial(way, folder / way, programs, tokens, complaints)
        return complaints

    return judge("atoll-lies-", arguments, measure)


if __name__ == "__main__":
    sys.exit(main())
