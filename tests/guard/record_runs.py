#!/usr/bin/env python3
"""Makes three small runs with the given programs, kills each in the middle of a round, and packs it into an archive.

  blocking       three workers, e3m0 and later int4 pushes with error feedback, delta pulls
  overlapped     two workers, two fragments, int8 pushes and delta pulls, zstd
  asynchronous   three workers, round.mode free, delayed_nesterov, a staleness limit

Each run has a changed setting, a checkpoint, evaluations, confirmations, and a clean restart of the coordinator. In its last life the
coordinator cannot store tensors, because its folder sst/ is moved away. It dies as by kill -9 (ATOLL_FAULT) after it has recorded an
acceptance and before it acknowledges it. The workers then finish their rounds, keep their contributions, and are killed. A run that
ends without one of these states is repeated.

The expectations come from the records of the killed run, and from the same programs, which open and continue a copy.
docs/internals/testing.md, "Recorded runs", says when to record again.

Usage: record_runs.py --programs DIR --out DIR [--only NAME] [--suffix TEXT] [--keep]
Exit codes: 0 recorded, 1 not.
"""
import argparse
import ctypes
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import time

import records
from recorded_run import EXPECTATIONS, PATIENCE_S, TOKENS, RecordedRun, contributors_of, observe, pack
from real_run import tokenize
from storage_trouble import Moved

CLONE_NEWUTS = 0x04000000
LARGEST_ARCHIVE, ATTEMPTS = 400_000, 8
# A lease is longer than a worker's start on a loaded machine, so that recovery waits for every worker.
CONFIG = """run: {{name: {name}, workers: {workers}, rounds: 400, seed: 11}}
model: {{gpt: {{layers: {layers}, heads: 2, width: 6, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 12, learning_rate: 0.005, warmup_steps: 10, batch: 2}}
outer: {outer}
round: {{deadline_s: 600, lease_s: 60, start_workers: {workers}{round}}}
codec: {codec}
sync: {sync}
evaluation: {{every: 2, batches: 2}}
checkpoint: {{shards: {shards}, keep_versions: 3}}
"""
RUNS = {
    "blocking": {
        "config": {"workers": 3, "layers": 1, "shards": 2, "round": "", "sync": "{mode: blocking}",
                   "outer": "{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}",
                   "codec": "{push: e3m0, error_feedback: true, pull_delta: e3m0}"},
        "setting": ("codec.push=int4", "outer.learning_rate=0.6")},
    "overlapped": {
        "config": {"workers": 2, "layers": 2, "shards": 1, "round": "", "outer": "{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}",
                   "sync": "{mode: overlapped, fragments: 2, pattern: strided, delay_steps: 2}",
                   "codec": "{push: int8, error_feedback: true, pull_delta: int8, zstd: true}"},
        "setting": ("outer.learning_rate=0.6",)},
    "asynchronous": {
        "config": {"workers": 3, "layers": 1, "shards": 1, "round": ", mode: free, staleness_limit: 4", "sync": "{mode: blocking}",
                   "outer": "{optimizer: delayed_nesterov, learning_rate: 0.5, momentum: 0.5}",
                   "codec": "{push: e3m0, error_feedback: true, pull_delta: none}"},
        "setting": ("round.staleness_limit=6",)},
}


class Unlucky(RuntimeError):
    """The kill came at a moment that does not leave all states that the recording needs."""


class Recording(RecordedRun):
    def __init__(self, folder, programs, name):
        settings = RUNS[name]
        (folder / "run.yaml").write_text(CONFIG.format(name=name, **settings["config"]))
        super().__init__(folder, programs)
        self.workers_planned = settings["config"]["workers"]
        self.free = "mode: free" in settings["config"]["round"]
        self.setting = settings["setting"]
        self.fault = ""

    def spawn(self, log, *command):
        """With relative paths: events name them, and the archive must not contain this machine's."""
        fault = [f"ATOLL_FAULT={self.fault}"] if self.fault and log == "coordinator.log" else []
        inside = [part.relative_to(self.folder) if isinstance(part, pathlib.Path) and part.is_relative_to(self.folder) else part
                  for part in command]
        return super().spawn(log, "env", f"--chdir={self.folder}", *fault, *inside)

    def await_more(self, versions):
        self.await_versions({fragment: version + versions for fragment, version in self.versions().items()})

    def live(self):
        """The run up to its last, broken life."""
        self.start_coordinator()
        for number in range(self.workers_planned):
            self.start_worker(f"w{number}", self.folder / TOKENS)
        self.wait_for(lambda: self.status().get("fragments"), PATIENCE_S, "the seed")
        self.await_versions({fragment: 3 for fragment in self.versions()})
        self.must("config", "set", *self.setting)
        self.await_more(2)
        self.must("checkpoint", "create", "recorded")
        self.await_more(2)
        if self.stop_coordinator() != 0:
            raise RuntimeError(f"the coordinator did not end well: {self.log_end()}")
        self.start_coordinator()
        self.await_more(2)

    def pause(self):
        """Pauses the run and waits for confirmations and for silence. Returns how many contributions the open rounds lack."""
        self.must("run", "pause", "--reason", "recording")
        oldest = min(self.versions().values())
        self.wait_for(lambda: all(int(w["confirmed_version"]) >= oldest - 1 for w in self.workers().values()), PATIENCE_S,
                      "confirmations")
        seen, since = None, time.monotonic()
        while time.monotonic() - since < 3:
            fragments = self.status()["fragments"]
            now = [(f["version"], f["stored_version"], f.get("arrived")) for f in fragments]
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.1)
        return sum(self.workers_planned - len(f.get("arrived", [])) for f in fragments)

    def die(self):
        """Kills the coordinator at an acceptance while it cannot store tensors, then the workers."""
        lacking, fragments = self.pause(), len(self.versions())
        if self.stop_coordinator() != 0:
            raise RuntimeError(f"the coordinator did not end well: {self.log_end()}")
        more = 1 if self.free else fragments * self.workers_planned - 1
        self.fault = f"ack.recorded:{1 + more if self.free else lacking + more}"
        self.start_coordinator()
        with Moved(self.folder / "coordinator" / "sst"):
            self.must("run", "resume")
            until = time.monotonic() + 30
            while self.coordinator.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            self.kill_coordinator()
        time.sleep(3)  # the workers finish their rounds and keep their contributions
        self.kill_all()

    def kill_coordinator(self):
        print(f"  the coordinator {'lives: killed' if self.coordinator.poll() is None else 'died at its place'}")
        self.kill()


def judge_end(run, known, pending):
    """The versions that the recorded contributions decide; Unlucky when the run lacks a state that the recording needs."""
    heads = {head["fragment"]: head["version"] for head in known["head"]}
    unstored = [s["fragment"] for s in known["stored"] if s["versions"][-1] < heads[s["fragment"]]]
    accepted = {(c["fragment"], c["base"], c["worker"]) for c in known["contribution"] if c["base"] == heads[c["fragment"]]}
    open_pushes = {(p["fragment"], p["base"], worker) for worker, pushes in pending.items() for p in pushes}
    print(f"  heads {heads}; not stored: fragments {unstored}; accepted in the open rounds: {sorted(accepted)}; "
          f"pending: {sorted(open_pushes)}; accepted without an answer: {sorted(accepted & open_pushes)}; counts {known['count']}")
    decided = decided_versions(run, known, pending)
    missing = [what for what, there in (
        ("versions", min(heads.values()) >= 6), ("a version that is not stored", unstored), ("an accepted contribution", accepted),
        ("a contribution that only its worker has", open_pushes - accepted), ("an acceptance without an answer", open_pushes & accepted),
        ("a next version that is decided", decided)) if not there]
    if missing:
        raise Unlucky(f"the run ended without {missing}")
    return decided


def contributors(known, head):
    return {c["worker"] for c in known["contribution"] if (c["fragment"], c["base"]) == (head["fragment"], head["version"])}


def settled_versions(run, known):
    """By fragment the version that the coordinator makes without any worker, from accepted contributions alone."""
    enough = 1 if run.free else run.workers_planned
    return {head["fragment"]: head["version"] + (len(contributors(known, head)) >= enough) for head in known["head"]}


def decided_versions(run, known, pending):
    """(fragment, version) of each next version that the accepted contributions, or those and the kept ones, decide."""
    if run.free:
        heads = {head["fragment"]: head["version"] for head in known["head"]}
        return [(fragment, version) for fragment, version in settled_versions(run, known).items() if version > heads[fragment]]
    kept = {(p["fragment"], p["base"], worker) for worker, pushes in pending.items() for p in pushes}
    return [(head["fragment"], head["version"] + 1) for head in known["head"]
            if len(contributors(known, head) | {w for f, base, w in kept if (f, base) == (head["fragment"], head["version"])})
            == run.workers_planned]


def continue_copy(folder, programs, decided, expected):
    """What the programs say of a copy, and the hashes of the decided versions that they make."""
    copy = folder.with_name(folder.name + "-copy")
    shutil.copytree(folder, copy, copy_function=shutil.copy)
    run = RecordedRun(copy, programs)
    try:
        run.start_coordinator()
        seen = observe(run, expected)
        run.start_recorded_workers(expected)
        run.await_versions({fragment: version + 1 for fragment, version in run.versions().items()})
    finally:
        run.kill_all()
    rounds = {(r["fragment"], r["version"]): r for r in records.of_data_directory(copy / "coordinator")["round"]}
    made = [{"contributors": contributors_of(rounds[pair]),
             **{key: rounds[pair][key] for key in ("fragment", "version", "parameters", "state", "published")}} for pair in decided]
    return seen, made


def record(name, programs, folder, archive):
    folder.mkdir(parents=True)
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 400)
    tokenize(programs, folder / "text", folder / TOKENS)
    run = Recording(folder, programs, name)
    try:
        run.live()
        run.die()
    finally:
        run.kill_all()
    known = records.of_data_directory(folder / "coordinator")
    pending = {f"w{number}": records.pending_pushes(folder / f"state-w{number}") for number in range(run.workers_planned)}
    decided = judge_end(run, known, pending)
    expected = {"records": known, "pending": pending, "settled": {str(f): v for f, v in settled_versions(run, known).items()}}
    expected["seen"], expected["next"] = continue_copy(folder, programs, decided, expected)
    (folder / EXPECTATIONS).write_text(json.dumps(expected, indent=1, sort_keys=True))
    check_neutral(folder)
    pack(folder, archive)
    size = archive.stat().st_size
    print(f"  {archive.name}: {size} bytes, decided versions {decided}")
    if size > LARGEST_ARCHIVE:
        raise RuntimeError(f"{archive.name} is larger than {LARGEST_ARCHIVE} bytes")


def hide_host_name():
    """RocksDB writes the host's name into table files: this process and its children get a neutral one."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUTS) != 0:
        raise RuntimeError(f"unshare: {os.strerror(ctypes.get_errno())}; recording needs root, to hide the host's name")
    socket.sethostname("recorder")


def check_neutral(folder):
    """The programs must not have written where they ran."""
    for path in folder.rglob("*"):
        if path.is_file() and (path.suffix != ".log" or path.parent != folder) and bytes(folder.parent) in path.read_bytes():
            raise RuntimeError(f"{path} contains the path of its folder")


def insist(name, programs, work, archive):
    if archive.exists():
        raise RuntimeError(f"{archive} exists, and an archive is never replaced: give --suffix")
    for attempt in range(ATTEMPTS):
        print(f"{name}:", flush=True)
        try:
            return record(name, programs, work / f"{name}-{attempt}", archive)
        except Unlucky as problem:
            print(f"  {problem}", flush=True)
    raise RuntimeError(f"{name}: none of {ATTEMPTS} attempts left every state that the recording needs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", choices=RUNS, help="the run with this name, and no other")
    parser.add_argument("--suffix", default="", help="of the archives' names, beside those of an older format")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the runs")
    arguments = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="atoll-record-"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        hide_host_name()
        for name in [arguments.only] if arguments.only else RUNS:
            insist(name, arguments.programs.resolve(), work, arguments.out / f"{name}{arguments.suffix}.tar.xz")
    except (RuntimeError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    finally:
        if arguments.keep:
            print(work)
        else:
            shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
