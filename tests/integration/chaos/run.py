"""One run of real programs: a coordinator that launches its workers, each behind a link of its own."""
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from link import Links  # noqa: E402
from real_run import RealRun  # noqa: E402

CONFIG = """run: {{name: chaos, workers: {workers}, rounds: {rounds}, seed: 7}}
model: {{gpt: {{layers: 2, heads: 2, width: 32, context: 32, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {steps}, learning_rate: 0.005, warmup_steps: 20, batch: 4}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: {deadline}, quorum: {quorum}, grace_s: 2, lease_s: {lease}, minimum: 1}}
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


class Run(RealRun):
    def __init__(self, folder, programs, worker_program, options):
        super().__init__(folder, programs, CONFIG.format(**options))
        self.worker_program = worker_program
        self.options = options
        self.names = [f"w{i}" for i in range(options["workers"])]
        for name in ("pids", "links"):
            (self.folder / name).mkdir()
        wrapper = self.folder / "wrapper"
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        self.links = Links(self.names)
        for name, link in self.links.by_name.items():
            (self.folder / "links" / name).write_text(str(link.port))

    def start(self, tokens):
        self.launch(self.folder / "wrapper", [self.folder, "{name}", self.worker_program, f"--data={tokens}", "--threads=1",
                                              "--device=cpu", "--log-format=json"])
        self.links.connect(self.data)

    def contributed(self):
        """Of every version the workers whose contributions it is made of, from the round records."""
        workers = {}
        for point in self.metrics():
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
        code = self.end()
        self.links.close()
        left = [name for name in self.names if self.pid_of(name) is not None]
        return code, left
