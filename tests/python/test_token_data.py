"""atoll.TokenDataset in a run: whatever happens to its workers, their batches are those of `atoll-data order`."""
import array
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import unittest

import torch

import atoll
from atoll.token_dataset import IGNORED_TARGET
from fixture import PATIENCE_S, Coordinator, RunTest, config, wait_for
from small_gpt import VOCABULARY, Gpt
from token_worker import BATCH

CONTEXT, PARTITIONS, SEED = 16, 5, 11
END = 7  # of a document


class TokenDataTest(RunTest):
    def data(self, *arguments):
        program = pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-data"
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout

    def dataset(self, name, files, *more):
        """An adopted dataset with training files of these sizes. `more`: arguments of adopt. Returns its training text."""
        draw, folder, text = random.Random(name), self.folder / name, []
        folder.mkdir()
        for number, size in enumerate([*files, 100]):
            tokens = [END if draw.random() < 0.1 else draw.randrange(VOCABULARY) for _ in range(size)]
            text += tokens if number < len(files) else []
            with open(folder / (f"train_{number}.bin" if number < len(files) else "val.bin"), "wb") as file:
                array.array("i", [20240520, 1, size] + [0] * 253).tofile(file)
                array.array("H", tokens).tofile(file)
        self.data("adopt", folder, "--tokenizer", "gpt2", "--vocabulary", VOCABULARY, *more)
        return text

    def order(self, folder, partition, samples, *more):
        """(part, sample, first token) of the first samples of a partition, by atoll-data."""
        return [tuple(map(int, line.split())) for line in self.data(
            "order", self.folder / folder, "--context", CONTEXT, "--seed", SEED, "--partition", partition, "--partitions", PARTITIONS,
            "--samples", samples, *more).splitlines()]

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
        self.coordinator(run={"workers": 2, "rounds": 10_000, "seed": SEED}, model={"external": {"context": CONTEXT}}, steps=4, batch=BATCH,
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
        wait_for(lambda: len(self.batches()) >= wanted + 30, "batches of three workers")
        self.hub.ctl("run", "stop", "--yes")
        for name, worker in workers.items():
            self.assertEqual(worker.wait(PATIENCE_S), 0, (self.folder / f"{name}.log").read_text()[-2000:])
        batches = self.batches()
        longest = BATCH + max(position for _, position, _ in batches)
        order = {partition: self.order("mix", partition, longest) for partition in range(PARTITIONS)}
        for partition, position, samples in batches:
            expected = [texts[part][first:first + CONTEXT] for part, _, first in order[partition][position:position + BATCH]]
            self.assertEqual(samples, expected, (partition, position))
        # No sample is skipped.
        for partition in range(PARTITIONS):
            positions = {position for which, position, _ in batches if which == partition}
            self.assertEqual(positions, set(range(0, len(positions) * BATCH, BATCH)), partition)
        self.assertGreaterEqual(len(batches), 12 * 4)

    def test_the_settings_of_the_run_count(self):
        text = self.dataset("web", [900, 700], "--end-of-text", END)
        files = atoll.TokenDataset(self.folder / "web")
        model = {"layers": 1, "heads": 1, "width": 8, "context": CONTEXT, "vocabulary": VOCABULARY}
        for isolated, sequences in ((True, "within_files"), (False, "across_files")):
            hub = Coordinator(self.folder, config(
                run={"workers": 1, "rounds": 1, "seed": SEED}, steps=2, batch=BATCH, model={"gpt": model}, data={
                    "mode": "shared", "partitions": PARTITIONS, "tokenizer": "gpt2", "isolate_documents": isolated, "sequences": sequences})).start()
            self.addCleanup(hub.stop, signal.SIGKILL)
            gpt = Gpt(layers=1, heads=1, width=8, context=CONTEXT)
            with atoll.join(hub.data, gpt, torch.optim.SGD(gpt.parameters(), lr=0.1), **self.options(f"w{int(isolated)}"),
                            data_fingerprint=files.fingerprint) as run:
                self.compare(next(run.steps(files.for_run(run).batches(BATCH))), text, isolated,
                             self.order("web", run.partition, BATCH, "--sequences", sequences))
                self.assertEqual(files.for_run(run, isolate_documents=not isolated).isolate_documents, not isolated)
                own = atoll.TokenDataset(self.folder / "web", isolate_documents=not isolated)
                self.assertEqual(own.for_run(run).for_run(run).isolate_documents, not isolated)
                run.stop()
            hub.stop()
            shutil.rmtree(self.folder / "coordinator")

    def compare(self, batch, text, isolated, order):
        """The batch has these samples of the text, and their documents where they are isolated."""
        names = {"input_ids", "targets"} | ({"document_ids", "position_ids"} if isolated else set())
        self.assertEqual(set(batch), names)
        self.assertIn(END, batch["input_ids"])
        for row, (_, _, first) in enumerate(order):
            inputs, targets = text[first:first + CONTEXT], text[first + 1:first + CONTEXT + 1]
            self.assertEqual(batch["input_ids"][row].tolist(), inputs)
            if not isolated:
                self.assertEqual(batch["targets"][row].tolist(), targets)
                continue
            self.assertEqual(batch["targets"][row].tolist(), [IGNORED_TARGET if token == END else target for token, target in zip(inputs, targets)])
            self.assertEqual(batch["document_ids"][row].tolist(), [inputs[:place].count(END) for place in range(CONTEXT)])
            self.assertEqual(batch["position_ids"][row].tolist(), [(inputs[:place][::-1] + [END]).index(END) for place in range(CONTEXT)])


if __name__ == "__main__":
    unittest.main()
