"""Islands of the real programs: a coordinator, and workers of several ranks that are processes of this script."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "integration"))

from hand_run import HandRun  # noqa: E402
from real_run import run_as_test, tokenize, tokenize_foxes  # noqa: E402,F401

STEPS, BATCH, CONTEXT = 20, 4, 16
CONFIG = """run: {name: island, workers: %(workers)d, rounds: %(rounds)d, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 4}
inner: {steps: 20, learning_rate: 0.005, batch: %(batch)d}
round: {deadline_s: 120, lease_s: 5, staleness_limit: 0}
evaluation: {every: 5, batches: 4}
checkpoint: {shards: 1}
"""


OVERLAPPED = "sync: {mode: overlapped, fragments: 2}\n"


def config(workers=1, rounds=100000, batch=BATCH):
    return CONFIG % {"workers": workers, "rounds": rounds, "batch": batch}


class IslandRun(HandRun):
    def start_island(self, name, tokens, ranks, *more):
        return self.start_worker(name, tokens, "--ranks", str(ranks), *more)

    def ranks(self, name):
        """Process ids of its ranks, by rank. Empty while they are being started."""
        supervisor = self.workers_by_name[name].pid
        found = {}
        try:
            children = pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
            for child in children:
                variables = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
                own = dict(v.split(b"=", 1) for v in variables if b"=" in v)
                if b"RANK" in own:
                    found[int(own[b"RANK"])] = int(child)
        except (FileNotFoundError, ProcessLookupError):
            return {}
        return found

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def await_version(self, version, seconds=120):
        self.wait_for(lambda: self.head() >= version, seconds, f"version {version}")

    def tokens_by_version(self, worker):
        """Of each version that `worker` has contributed to: the tokens that count. A list: more than one counts twice."""
        tokens = {}
        for point in self.metrics():
            if point["name"] == "worker/tokens" and point["worker"] == worker:
                tokens.setdefault(int(point["version"]), []).append(int(point["value"]))
        return tokens

    def check_counts(self, complaints, worker, ranks, overlapped=False):
        """Each contribution counts once, with all tokens of all ranks. Overlapped, the steps since the last push make one,
        and a push that found no exchange free is skipped: its steps are in the next."""
        step = BATCH * CONTEXT * ranks
        counted = self.tokens_by_version(worker)
        for version, tokens in counted.items():
            fits = len(tokens) == 1 and (tokens[0] > 0 and tokens[0] % step == 0 if overlapped else tokens[0] == STEPS * step)
            if not fits:
                complaints.append(f"version {version} counts {tokens} tokens of {worker}, expected one of {STEPS} steps of {step}")
        print(f"{len(counted)} versions have a contribution of {worker}; one each: {all(len(t) == 1 for t in counted.values())}")
        names = set(self.workers() or {})
        if worker not in names or any(name not in self.workers_by_name for name in names):
            complaints.append(f"the members are {sorted(names)}: a restart must keep the name and add none")
        said = (self.folder / "coordinator.log").read_text()
        if "claims more than was assigned" in said:
            complaints.append("the coordinator capped a contribution")
        if "left: failed" in said:
            complaints.append("a lost rank made the worker say goodbye: it must only be late")
