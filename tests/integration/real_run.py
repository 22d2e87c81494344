"""A coordinator of the real programs, which launches its workers and ends with this script."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import waiting

PROGRAMS = ("atoll-coordinator", "atoll-worker", "atollctl", "atoll-data")


def tokenize(programs, text, folder):
    """The token files of a text, with bytes as tokens."""
    subprocess.run([programs / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", folder, text], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return folder


def tokenize_foxes(programs, folder):
    """The token files of a text that a small model learns at once, in the folder."""
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 3000)
    return tokenize(programs, folder / "text", folder / "tokens")


def judge(prefix, arguments, measure):
    """The exit code of a test: what `measure(folder, programs)` complains of is printed, and the folder removed unless kept."""
    programs = arguments.bin.resolve()
    if not all((programs / name).exists() for name in PROGRAMS):
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
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


def run_as_test(prefix, description, measure):
    """The main function of a test whose options are --bin DIR and --keep: its exit code, by judge()."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    return judge(prefix, parser.parse_args(), measure)


class RealRun:
    ctl_patience_s = 180  # for one command

    def __init__(self, folder, programs, config):
        self.folder = pathlib.Path(folder)
        self.programs = pathlib.Path(programs)
        self.complaint = ""  # of the last atollctl that failed
        self.credentials = ()  # of atollctl: flags
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "run.yaml").write_text(config)

    def launch(self, worker_command, worker_arguments, workers=None, more=()):
        """So many workers; None: as many as the configuration plans. `more`: arguments of the coordinator."""
        arguments = ["--config", self.folder / "run.yaml", "--data-dir", self.folder / "coordinator",
                     "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "",
                     "--port-file", self.folder / "ports.json", "--log-format", "json",
                     "--launcher", "process", "--worker-command", worker_command,
                     *(f"--worker-arg={argument}" for argument in worker_arguments),
                     *(["--launch-workers", str(workers)] if workers is not None else []), *more]
        # The programs share the processors: who waits must not spin.
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        with open(self.folder / "coordinator.log", "wb") as log:
            # Should this script be killed, the kernel kills the coordinator, and its workers with it.
            self.coordinator = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", self.programs / "atoll-coordinator", *arguments],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.wait_for((self.folder / "ports.json").exists, 60, "the coordinator to serve")
        ports = json.loads((self.folder / "ports.json").read_text())
        self.admin, self.data = ports["admin"], ports["data"]

    def wait_for(self, done, seconds, what):
        waiting.wait_for(self.coordinator, self.log_end, done, seconds, what)

    def log_end(self):
        return (self.folder / "coordinator.log").read_text()[-3000:]

    def ctl(self, *arguments):
        """What atollctl prints; None when it fails, and then `complaint` is what it said."""
        done = subprocess.run([self.programs / "atollctl", "--timeout", "30", "--admin", self.admin, "--coordinator", self.data,
                               *self.credentials, *arguments], capture_output=True, text=True, timeout=self.ctl_patience_s,
                              check=False)
        if done.returncode != 0:
            self.complaint = done.stderr.strip()
        return done.stdout if done.returncode == 0 else None

    def status(self, history=0):
        text = self.ctl("status", "--json", *(["--history", str(history)] if history else []))
        return json.loads(text) if text else None

    def head(self):
        status = self.status() or {}
        return max((int(fragment["version"]) for fragment in status.get("fragments", [])), default=0)

    def workers(self):
        text = self.ctl("workers", "list", "--all", "--json")
        return {w["name"]: w for w in json.loads(text).get("workers", [])} if text else None

    def lines(self, *arguments):
        """Of a command that prints one JSON object a line."""
        text = self.ctl(*arguments)
        return [json.loads(line) for line in text.splitlines() if line.strip()] if text else []

    def events(self):
        return self.lines("events", "--json")

    def metrics(self):
        """Points, from the round records: name, worker, version, value."""
        return self.lines("metrics", "export", "--format", "jsonl")

    def end(self):
        """As an operator would; the coordinator's exit code."""
        self.coordinator.terminate()
        try:
            return self.coordinator.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.coordinator.returncode

    def kill(self):
        if self.coordinator.poll() is None:
            self.coordinator.kill()
            self.coordinator.wait()
