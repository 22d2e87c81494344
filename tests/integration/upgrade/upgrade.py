#!/usr/bin/env python3
"""The previous release and this one in one run: real programs of both, over real sockets and one data directory.

  old workers     a coordinator of this release, workers of the previous one
  new workers     a coordinator of the previous release, workers of this one: what an upgrade that starts with them looks like
  in place        a run begun by the previous release is ended in the middle, and finished by this one from the same data
                  directory and the workers' own state; this release recomputes every version, also those of the other
  under way       a rolling upgrade of the coordinator while workers train that were started by hand and are not started again:
                  the coordinator of the previous release is ended with SIGTERM, and this one goes on at its ports. With workers
                  of this release, and with those of the previous one

Each run must finish with the tokens that were planned, without a refused contribution, and with the loss having fallen. Under
way no worker may end before the run does, and every version must be made of the contributions of all. A worker of the previous
release may end in one way, which is its known defect: a push that the shutdown cancels (CANCELLED) ends it. It is then
started again, as its supervisor would do, and the versions between lack it.

Usage: upgrade.py --bin DIR --previous FOLDER [--only NAME] [--keep]    FOLDER: where build_previous.sh builds
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 a program or the previous release is not there.
"""
import argparse
import collections
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from hand_run import HandRun  # noqa: E402  (it lies one folder up)
from real_run import RealRun, tokenize_foxes  # noqa: E402

ROUNDS, STEPS, BATCH, CONTEXT, WORKERS = 8, 12, 4, 16, 2
CONFIG = f"""run: {{name: upgrade, workers: {WORKERS}, rounds: {ROUNDS}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: {CONTEXT}, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {STEPS}, learning_rate: 0.005, warmup_steps: 10, batch: {BATCH}}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
codec: {{push: e3m0, pull_delta: int8}}
round: {{deadline_s: 60, start_workers: {WORKERS}}}
evaluation: {{every: 2, batches: 4}}
checkpoint: {{shards: 1, keep_versions: 40}}
"""
# Another default of the codecs than the previous release's must not reach a run that it began.
SILENT = CONFIG.replace("codec: {push: e3m0, pull_delta: int8}\n", "")
# Short rounds, so that a stop hits calls of all kinds; and enough of them.
UNDER_WAY = SILENT.replace(f"rounds: {ROUNDS}", "rounds: 5000").replace("{every: 2", "{every: 50").replace(
    "keep_versions: 40", "keep_versions: 1000")
HAND_WORKERS = 3
# The last words of a worker of the previous release whose push was cancelled.
OLD_DEFECT = '"level":"error","message":"CANCELLED"'
PATIENCE_S = 180
PROGRAMS = ("atoll-coordinator", "atoll-worker", "atollctl", "atoll-data")


def launch(run, worker_programs, tokens):
    run.launch(worker_programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])


def finish(run, complaints):
    run.wait_for(lambda: (run.status() or {}).get("state") == "RUN_STATE_FINISHED", PATIENCE_S, "the end of the run")
    status = run.status()
    run.wait_for(lambda: int(run.status()["evaluations"][-1]["version"]) >= ROUNDS, PATIENCE_S, "the last evaluation")
    losses = [float(evaluation["loss"]) for evaluation in run.status()["evaluations"]]
    tokens, planned = int(status["committed_tokens"]), WORKERS * ROUNDS * STEPS * BATCH * CONTEXT
    if not planned <= tokens < planned + WORKERS * STEPS * BATCH * CONTEXT:
        complaints.append(f"{tokens} tokens were committed, {planned} were planned")
    if losses[-1] >= losses[0]:
        complaints.append(f"the loss did not fall: {losses}")
    refused = [event for event in run.events() if "REFUSED" in event.get("kind", "")]
    if refused:
        complaints.append(f"contributions were refused: {refused}")
    print(f"  version {run.head()}, {tokens} tokens, loss {losses[0]:.3f} -> {losses[-1]:.3f}")


def together(folder, coordinator_programs, worker_programs, tokens):
    run, complaints = RealRun(folder, coordinator_programs, CONFIG), []
    try:
        launch(run, worker_programs, tokens)
        finish(run, complaints)
    finally:
        run.end()
    return complaints


def in_place(folder, old, new, tokens):
    run, complaints = RealRun(folder, old, SILENT), []
    try:
        launch(run, old, tokens)
        run.wait_for(lambda: run.head() >= 3, PATIENCE_S, "version 3")
    finally:
        run.end()
    (folder / "ports.json").unlink()
    run = RealRun(folder, new, SILENT)
    try:
        launch(run, new, tokens)
        began_at = run.head()
        codecs = (run.status() or {})["config"]["codec"]
        if (codecs["push"], codecs["pull_delta"]) != ("CODEC_FP32", "PULL_DELTA_NONE"):
            complaints.append(f"the codecs of the run changed with the release: {codecs}")
        if began_at < 3:
            complaints.append(f"the head went back to version {began_at}")
        finish(run, complaints)
        verdicts = collections.Counter(line["verdict"] for line in run.lines("verify", "--json"))
        # Only version 0 has no round to be recomputed from.
        if verdicts["EQUAL"] != run.head() or verdicts["NOT_KEPT"] > 1 or len(verdicts) > 2:
            complaints.append(f"verify says {dict(verdicts)} of {run.head()} versions")
        print(f"  taken over at version {began_at}; {verdicts['EQUAL']} versions recomputed")
    finally:
        run.end()
    return complaints


class UnderWay:
    """Workers that nobody starts again, but for those that the previous release's defect has ended."""

    def __init__(self, folder, old, new, workers, tokens):
        config = UNDER_WAY.replace(f"workers: {WORKERS}", f"workers: {HAND_WORKERS}")
        self.run = HandRun(folder, old, config, workers / "atoll-worker")
        self.old, self.new, self.tokens = old, new, tokens
        self.of_old_release = workers == old
        self.complaints = []
        self.ended = collections.Counter()  # names of workers that the defect ended

    def look(self):
        for name, process in self.run.workers_by_name.items():
            if process.poll() is None:
                continue
            words = self.run.worker_log_end(name)
            if self.of_old_release and OLD_DEFECT in words:
                self.ended[name] += 1
                self.run.start_worker(name, self.tokens)
            else:
                self.complaints.append(f"{name} ended with {process.returncode}: {words}")
        if self.complaints:
            raise RuntimeError("a worker is gone")
        return True

    def until(self, version):
        self.run.wait_for(lambda: self.look() and self.run.head() >= version, PATIENCE_S, f"version {version}")

    def replace(self):
        """The coordinator by that of this release, once; its exit code must be 0."""
        code = self.run.stop_coordinator()
        if code != 0:
            self.complaints.append(f"the coordinator ended with {code}: {self.run.log_end()}")
        self.run.programs = self.new
        self.run.start_coordinator()

    def go(self):
        self.run.start_coordinator()
        for i in range(HAND_WORKERS):
            self.run.start_worker(f"w{i}", self.tokens)
        self.until(20)
        time.sleep(random.Random(3).uniform(0, 0.2))
        self.replace()
        taken_over = self.run.head()
        self.until(taken_over + 20)
        self.run.wait_for(lambda: self.look() and all(worker["state"] == "active" for worker in self.run.workers().values()),
                          PATIENCE_S, "all workers to be there")
        self.until(self.run.head() + 5)
        self.run.ctl("run", "stop", "--yes")
        for name, process in self.run.workers_by_name.items():
            if process.wait(PATIENCE_S) != 0:
                self.complaints.append(f"{name} ended with {process.returncode}: {self.run.worker_log_end(name)}")
        self.judge(taken_over)

    def judge(self, taken_over):
        run = self.run
        contributed, head = run.contributed(), run.head()
        # The round that is open when the run is stopped closes with what has come.
        without = {version: self.run.workers_by_name.keys() - contributed.get(version, set()) for version in range(1, head)}
        for version, missing in without.items():
            if missing - self.ended.keys() or (missing and (version <= taken_over or version > head - 3)):
                self.complaints.append(f"version {version} lacks the contributions of {sorted(missing)}")
        kinds = [event.get("kind", "") for event in run.events()]
        refused = sum("REFUSED" in kind for kind in kinds[:kinds.index("RUN_STOPPED")])
        if refused:
            self.complaints.append(f"{refused} contributions were refused before the run was stopped: {run.events()}")
        verdicts = collections.Counter(line["verdict"] for line in run.lines("verify", "--json"))
        if verdicts["EQUAL"] != head or verdicts["NOT_KEPT"] > 1 or len(verdicts) > 2:
            self.complaints.append(f"verify says {dict(verdicts)} of {head} versions")
        print(f"  taken over at version {taken_over}, {head} versions, {verdicts['EQUAL']} recomputed, "
              f"{sum(bool(missing) for missing in without.values())} without the contribution of a worker")
        print(f"  ended by that release's defect, and started again: {dict(self.ended)}" if self.ended else "  no worker ended")


def under_way(folder, old, new, workers, tokens):
    crossing = UnderWay(folder, old, new, workers, tokens)
    try:
        crossing.go()
    except RuntimeError as problem:
        crossing.complaints.append(str(problem))
    finally:
        crossing.run.kill_all()
    return crossing.complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--previous", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="the crossing with this name, and no other")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the runs")
    arguments = parser.parse_args()
    built = subprocess.run([HERE / "build_previous.sh", arguments.previous], check=False)
    if built.returncode != 0:
        return built.returncode
    new, old = arguments.bin.resolve(), arguments.previous.resolve() / "bin"
    if not all((folder / name).exists() for folder in (new, old) for name in PROGRAMS):
        return 77
    work = pathlib.Path(tempfile.mkdtemp(prefix="atoll-upgrade-"))
    tokens = tokenize_foxes(new, work)
    crossings = {
        "old workers": lambda folder: together(folder, new, old, tokens),
        "new workers": lambda folder: together(folder, old, new, tokens),
        "in place": lambda folder: in_place(folder, old, new, tokens),
        "under way": lambda folder: under_way(folder, old, new, new, tokens),
        "under way, old workers": lambda folder: under_way(folder, old, new, old, tokens),
    }
    failed = False
    try:
        for name, run in crossings.items():
            if arguments.only and name != arguments.only:
                continue
            print(f"{name}:", flush=True)
            for complaint in run(work / name.replace(",", "").replace(" ", "-")):
                print(f"{name}: {complaint}", file=sys.stderr)
                failed = True
    finally:
        if arguments.keep:
            print(work)
        else:
            shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
