#!/usr/bin/env python3
"""Trouble with the coordinator's files while real workers train: nobody ends, it is shown, and the run goes on by itself.

For some seconds the folder of the contributions, then the whole data directory is somewhere else, and then (where this
script may) the folder of the contributions takes no new files, as on a disk that the kernel has made read-only. It must
show each time: no worker ends, `status` names the trouble and the file, and versions come again when it is over. At the end
`atollctl verify` recomputes every version.

Usage: storage_trouble.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import shutil
import subprocess
import sys
import time

from hand_run import HandRun
from real_run import run_as_test, tokenize

WORKERS = 2
PATIENCE_S = 60
CONFIG = f"""run: {{name: trouble, workers: {WORKERS}, rounds: 100000, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 2, learning_rate: 0.005, warmup_steps: 10, batch: 2}}
round: {{deadline_s: 60, start_workers: {WORKERS}}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1, keep_versions: 1000}}
"""


class Moved:
    """A folder that is somewhere else while the `with` block runs."""
    def __init__(self, folder):
        self.folder, self.elsewhere = folder, folder.with_name(folder.name + "-away")

    def __enter__(self):
        self.folder.rename(self.elsewhere)

    def __exit__(self, *_):
        self.elsewhere.rename(self.folder)


class Immutable:
    """A folder in which nothing can be made or removed while the `with` block runs."""
    def __init__(self, folder):
        self.folder = folder

    def change(self, flag):
        subprocess.run(["chattr", flag, self.folder], check=True, capture_output=True)

    def __enter__(self):
        self.change("+i")

    def __exit__(self, *_):
        self.change("-i")


def may_be_immutable(folder):
    try:
        with Immutable(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False  # no chattr, not root, or a file system without it


def ended(run):
    return [f"worker {name} ended with {process.returncode}: {run.worker_log_end(name)}"
            for name, process in run.workers_by_name.items() if process.poll() is not None]


def grows(run, complaints, when):
    head, until = run.head(), time.monotonic() + PATIENCE_S
    while run.head() < head + 2 and not ended(run) and time.monotonic() < until:
        time.sleep(0.1)
    if run.head() < head + 2:
        complaints.append(f"no versions came {when}: {run.status().get('storage_error')}, {run.log_end()[-800:]}")


def trouble(run, what, name, complaints):
    with what:
        until = time.monotonic() + PATIENCE_S
        while not (told := run.status().get("storage_error", "")) and not ended(run) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(3)  # the workers try again meanwhile
    if name not in told:
        complaints.append(f"status does not name {name}: '{told}'")
    complaints += ended(run)
    grows(run, complaints, f"after {type(what).__name__} {name} was over")


def measure(folder, programs):
    complaints = []
    text = folder / "text"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 400)
    tokens = tokenize(programs, text, folder / "tokens")
    run = HandRun(folder, programs, CONFIG)
    try:
        run.start_coordinator()
        for number in range(WORKERS):
            run.start_worker(f"w{number}", tokens)
        grows(run, complaints, "at the start")
        data = folder / "coordinator"
        trouble(run, Moved(data / "contributions"), "contributions", complaints)
        trouble(run, Moved(data), "coordinator", complaints)
        if shutil.which("chattr") and may_be_immutable(data / "contributions"):
            trouble(run, Immutable(data / "contributions"), "contributions", complaints)
        kinds = [event.get("kind", "") for event in run.events()]
        for kind in ("EVENT_KIND_STORAGE_FAILING", "EVENT_KIND_STORAGE_RECOVERED"):
            if not any(kind.removeprefix("EVENT_KIND_") in found for found in kinds):
                complaints.append(f"no event {kind}")
        if run.ctl("verify") is None:
            complaints.append(f"verify: {run.complaint}")
        complaints += ended(run)
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-trouble-", __doc__, measure))
