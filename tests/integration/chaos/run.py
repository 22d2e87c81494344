"""One run of real programs: a coordinator that launches its workers, each behind a link of its own."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

from link import Links

CONFIG = """run: {{name: chaos, workers: {workers}, rounds: {rounds}, seed: 7}}
model: {{gpt: {{layers: 2, heads: 2, width: 32, context: 32, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {steps}, learning_rate: 0.005, warmup_steps: 20, batch: 4}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: {deadline}, quorum: 0.5, grace_s: 2, lease_s: {lease}, minimum: 1}}
evaluation: {{every: {evaluate}, batches: 64}}
checkpoint: {{shards: 1}}
"""

# The launcher runs this in the worker's place: it notes its process, and goes to the coordinator through its link.
WRAPPER = """#!/bin/bash
folder=$1 name=$2 program=$3
shift 3
echo $$ >"$folder/pids/$name.new"
mv "$folder/pids/$name.new" "$folder/pids/$name"
args=()
while [ $# -gt 0 ]; do
  if [ "$1" = --coordinator ]; then args+=("$1" "127.0.0.1:$(cat "$folder/links/$name")"); shift 2; else args+=("$1"); shift; fi
done
exec "$program" "${args[@]}"
"""


def write_text(path, size, seed):
    """Letters, each followed by one of two: the least loss there is, ln 2, is reached in some hundred steps, so that two
    runs of the same tokens can be compared however many rounds they were cut into."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnop"
    after = {letter: rng.sample(letters, 2) for letter in letters}
    text = ["a"]
    while len(text) < size:
        text.append(rng.choice(after[text[-1]]))
    path.write_text("".join(text), encoding="ascii")


class Run:
    def __init__(self, folder, programs, worker_program, options):
        self.folder = pathlib.Path(folder)
        self.programs = pathlib.Path(programs)
        self.worker_program = worker_program
        self.options = options
        self.complaint = ""  # of the last atollctl that failed
        self.names = [f"w{i}" for i in range(options["workers"])]
        for name in ("pids", "links"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "run.yaml").write_text(CONFIG.format(**options))
        wrapper = self.folder / "wrapper"
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        self.links = Links(self.names)
        for name, link in self.links.by_name.items():
            (self.folder / "links" / name).write_text(str(link.port))

    def start(self, tokens):
        log = open(self.folder / "coordinator.log", "wb")
        arguments = ["--config", self.folder / "run.yaml", "--data-dir", self.folder / "coordinator",
                     "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "",
                     "--port-file", self.folder / "ports.json", "--log-format", "json",
                     "--launcher", "process", "--worker-command", self.folder / "wrapper",
                     f"--worker-arg={self.folder}", "--worker-arg={name}", f"--worker-arg={self.worker_program}",
                     f"--worker-arg=--data={tokens}", "--worker-arg=--threads=1", "--worker-arg=--device=cpu",
                     "--worker-arg=--log-format=json"]
        # Nine programs share the processors: who waits must not spin.
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        # Should this script be killed, the kernel kills the coordinator, and its workers with it.
        self.coordinator = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.programs / "atoll-coordinator", *arguments],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        log.close()
        self.wait_for(lambda: (self.folder / "ports.json").exists(), 60, "the coordinator to serve")
        ports = json.loads((self.folder / "ports.json").read_text())
        self.admin, self.data = ports["admin"], ports["data"]
        self.links.connect(self.data)

    def wait_for(self, done, seconds, what):
        deadline = time.monotonic() + seconds
        while not done():
            if self.coordinator.poll() is not None:
                raise RuntimeError(f"the coordinator ended with {self.coordinator.returncode}: {self.log_end()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {seconds} s in vain for {what}: {self.log_end()}")
            time.sleep(0.05)

    def log_end(self):
        return (self.folder / "coordinator.log").read_text()[-3000:]

    def ctl(self, *arguments):
        """What atollctl prints as JSON; None when it fails."""
        done = subprocess.run([self.programs / "atollctl", "--timeout", "30", "--admin", self.admin, "--coordinator", self.data,
                               *arguments], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            self.complaint = done.stderr.strip()
        return done.stdout if done.returncode == 0 else None

    def status(self, history=0):
        text = self.ctl("status", "--json", *(["--history", str(history)] if history else []))
        return json.loads(text) if text else None

    def workers(self):
        text = self.ctl("workers", "list", "--all", "--json")
        return {w["name"]: w for w in json.loads(text).get("workers", [])} if text else None

    def events(self):
        text = self.ctl("events", "--json")
        return [json.loads(line) for line in text.splitlines() if line.strip()] if text else []

    def contributed(self):
        """Of every version the workers whose contributions it is made of, from the round records."""
        workers = {}
        for line in (self.ctl("metrics", "export", "--format", "jsonl") or "").splitlines():
            point = json.loads(line)
            if point["name"] == "worker/steps":
                workers.setdefault(point["version"], set()).add(point["worker"])
        return workers

    def pid_of(self, name):
        """The worker's process; None while it has none."""
        try:
            pid = int((self.folder / "pids" / name).read_text())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    def stop(self):
        """Ends it as an operator would; the coordinator's exit code, and how many workers were left running."""
        for link in self.links.by_name.values():
            link.set_mode("pass")
        for name in self.names:
            if (pid := self.pid_of(name)) is not None:
                os.kill(pid, signal.SIGCONT)
        self.coordinator.terminate()
        try:
            code = self.coordinator.wait(60)
        except subprocess.TimeoutExpired:
            self.coordinator.kill()
            code = self.coordinator.wait()
        self.links.close()
        left = [name for name in self.names if self.pid_of(name) is not None]
        return code, left

    def kill(self):
        if self.coordinator.poll() is None:
            self.coordinator.kill()
            self.coordinator.wait()
