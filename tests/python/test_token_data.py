"""atoll.TokenDataset in a run: whatever happens to its workers, their batches are those of `atoll-data order`."""
import array
import json
import os
import pathlib
import random
import signal
import subprocess
import unittest

from fixture import PATIENCE_S, RunTest, wait_for
from token_worker import BATCH

CONTEXT, PARTITIONS, SEED = 16, 5, 11


class TokenDataTest(RunTest):
    def data(self, *arguments):
        program = pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-data"
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout

    def dataset(self, name, files):
        """An adopted dataset with training files of these sizes. Returns its training text."""
        draw, folder, text = random.Random(name), self.folder / name, []
        folder.mkdir()
        for number, size in enumerate([*files, 100]):
            tokens = [draw.randrange(500) for _ in range(size)]
            text += tokens if number < len(files) else []
            with open(folder / (f"train_{number}.bin" if number < len(files) else "val.bin"), "wb") as file:
                array.array("i", [20240520, 1, size] + [0] * 253).tofile(file)
                array.array("H", tokens).tofile(file)
        self.data("adopt", folder, "--tokenizer", "gpt2", "--vocabulary", 500)
        return text

    def batches(self):
        """Partition, position and samples of every batch of every worker."""
        found = []
        for journal in sorted(self.folder.glob("*.journal")):
            for line in journal.read_text().splitlines():
                found.append(json.loads(line))
        return found

    def start(self, name):
        return self.spawn("token_worker.py", self.hub.data, name, self.folder / f"state-{name}", self.folder / f"{name}.journal",
                          self.folder / "mix", log=f"{name}.log")

    def test_kills_restarts_and_joins_keep_the_order(self):
        texts = [self.dataset("web", [900, 700, 10]), self.dataset("code", [300, 120])]
        self.data("mix", "--out", self.folder / "mix", f"{self.folder / 'web'}=0.7", f"{self.folder / 'code'}=0.3")
        self.coordinator(run={"workers": 2, "rounds": 12, "seed": SEED}, model={"external": {"context": CONTEXT}}, steps=4, batch=BATCH,
                         data={"mode": "shared", "partitions": PARTITIONS},
                         round={"quorum": 0.5, "grace_s": 0.5, "lease_s": 2, "start_workers": 2})
        workers = {name: self.start(name) for name in ("w0", "w1")}
        for number, name in enumerate(("w1", "w0", "w1")):
            wanted = len(self.batches()) + 9
            wait_for(lambda least=wanted: len(self.batches()) >= least, "batches")
            workers[name].send_signal(signal.SIGKILL)
            workers[name].wait(PATIENCE_S)
            workers[name] = self.start(name)
            if number == 0:
                workers["w2"] = self.start("w2")
        for name, worker in workers.items():
            self.assertEqual(worker.wait(PATIENCE_S), 0, (self.folder / f"{name}.log").read_text()[-2000:])
        batches = self.batches()
        order = {partition: [tuple(map(int, line.split())) for line in self.data(
            "order", self.folder / "mix", "--context", CONTEXT, "--seed", SEED, "--partition", partition, "--partitions", PARTITIONS,
            "--samples", 2000).splitlines()] for partition in range(PARTITIONS)}
        for partition, position, samples in batches:
            expected = [texts[part][first:first + CONTEXT] for part, _, first in order[partition][position:position + BATCH]]
            self.assertEqual(samples, expected, (partition, position))
        # No sample is skipped.
        for partition in range(PARTITIONS):
            positions = {position for which, position, _ in batches if which == partition}
            self.assertEqual(positions, set(range(0, len(positions) * BATCH, BATCH)), partition)
        self.assertGreaterEqual(len(batches), 12 * 4)


if __name__ == "__main__":
    unittest.main()
