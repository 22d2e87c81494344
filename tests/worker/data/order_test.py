#!/usr/bin/env python3
"""The order of samples in three implementations: atoll-data, the Python package, and the code of docs/reference/data_order.md.

Usage: order_test.py ATOLL_DATA
"""
import array
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/reference/data_order.md"
sys.path.insert(0, str(ROOT / "python"))
DATA = ""  # the program
SAMPLES = 10000
CONTEXT = 16


def page_code():
    """What the page defines: sample_at, mixture_sample and others."""
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(block, names)
    return names


class FromThePage:
    """The order of a folder, from its description and the code of the page."""

    def __init__(self, folder, seed, within_files):
        self.code, self.seed = page_code(), seed
        meta = json.loads((folder / "meta.json").read_text())
        if "mixture" in meta:
            metas = [json.loads((folder / part["folder"] / "meta.json").read_text()) for part in meta["mixture"]]
            self.weights = [part["weight"] for part in meta["mixture"]]
        else:
            metas, self.weights = [meta], None
        self.firsts = [self.first_tokens([entry["tokens"] for entry in part["train"]], within_files) for part in metas]

    @staticmethod
    def first_tokens(files, within_files):
        """The first token of each sample, by walking over all of them."""
        found, begin = [], 0
        for tokens in files if within_files else [sum(files)]:
            found += [begin + at for at in range(0, tokens - CONTEXT, CONTEXT)]
            begin += tokens
        return found

    def at(self, position):
        if self.weights is None:
            part, sample = 0, self.code["sample_at"](position, len(self.firsts[0]), self.seed)
        else:
            part, sample = self.code["mixture_sample"](position, self.weights, [len(one) for one in self.firsts], self.seed)
        return part, sample, self.firsts[part][sample]


def run(*arguments):
    done = subprocess.run([DATA, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"atoll-data {arguments}: {done.stderr}")
    return done.stdout


def write(path, tokens):
    with open(path, "wb") as file:
        array.array("i", [20240520, 1, len(tokens)] + [0] * 253).tofile(file)
        array.array("H", tokens).tofile(file)


def dataset(folder, files, seed):
    """An adopted dataset with training files of these sizes."""
    draw = random.Random(seed)
    folder.mkdir()
    for number, tokens in enumerate([*files, 100]):
        write(folder / (f"train_{number}.bin" if number < len(files) else "val.bin"), [draw.randrange(500) for _ in range(tokens)])
    run("adopt", folder, "--tokenizer", "gpt2", "--vocabulary", 500, "--end-of-text", 7)
    return folder


class OrderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def ordered(self, folder, seed, partition, partitions, first, samples, sequences="within_files"):
        lines = run("order", folder, "--context", CONTEXT, "--seed", seed, "--partition", partition, "--partitions", partitions,
                    "--first", first, "--samples", samples, "--sequences", sequences).splitlines()
        return [tuple(map(int, line.split())) for line in lines]

    def compare(self, folder, seed=1337, sequences="within_files", partitions=7):
        from atoll import TokenDataset
        page = FromThePage(folder, seed, sequences == "within_files")
        package = TokenDataset(folder, CONTEXT, seed, sequences)
        each = -(-SAMPLES // partitions)
        for partition in range(partitions):
            found = self.ordered(folder, seed, partition, partitions, 0, each, sequences)
            self.assertEqual(len(found), each)
            self.assertEqual(found, [page.at(k * partitions + partition) for k in range(each)])
            self.assertEqual(found, [tuple(package.place(k, partition, partitions)) for k in range(each)])
        far = 10 ** 12 + 3
        self.assertEqual(self.ordered(folder, seed, 2, partitions, far, 5, sequences), [page.at((far + k) * partitions + 2) for k in range(5)])

    def test_the_golden_tables_are_those_of_the_page(self):
        code, text = page_code(), PAGE.read_text().partition("## Golden table")[2]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| [\d]", line)]
        checked = 0
        for row in rows:
            if "," in row[0]:
                weights, samples = [[int(n) for n in cell.split(",")] for cell in row[:2]]
                first = eval(row[2].partition(" to ")[0].partition("-")[0].replace("^", "**"))
                expected = [tuple(map(int, pair.split())) for pair in row[3].split(",")]
                found = [code["mixture_sample"](first + i, weights, samples, 1337) for i in range(len(expected))]
            else:
                samples, seed, expected = int(row[0]), eval(row[1].replace("^", "**")), [int(n) for n in row[3].split()]
                if row[2].startswith("k"):
                    found = [code["partition_sample"](2, 4, k, samples, seed) for k in range(len(expected))]
                else:
                    first = eval(row[2].partition("-")[0].replace("^", "**"))
                    found = [code["sample_at"](first + i, samples, seed) for i in range(len(expected))]
            self.assertEqual(found, expected, row)
            checked += 1
        self.assertEqual(checked, 10)

    def test_one_dataset(self):
        folder = dataset(self.folder / "one", [3001, 17, 16, 5, 900, 33], 1)
        self.compare(folder)
        self.compare(folder, seed=2 ** 64 - 1, partitions=64)
        self.compare(folder, sequences="across_files")

    def test_a_mixture(self):
        for name, files in (("web", [4000, 2500, 20]), ("code", [700, 900]), ("math", [321])):
            dataset(self.folder / name, files, len(name))
        run("mix", "--out", self.folder / "mix", f"{self.folder}/web=0.6", f"{self.folder}/code=0.3", f"{self.folder}/math:0.1")
        self.compare(self.folder / "mix")
        self.compare(self.folder / "mix", seed=5, sequences="across_files", partitions=64)
        parts = [part for part, _, _ in self.ordered(self.folder / "mix", 1337, 0, 1, 0, SAMPLES)]
        self.assertEqual([parts.count(part) for part in range(3)], [6000, 3000, 1000])

    def test_a_long_ratio_makes_blocks_of_65536(self):
        for name, files in (("web", [4000]), ("code", [700])):
            dataset(self.folder / name, files, len(name))
        run("mix", "--out", self.folder / "mix", f"{self.folder}/web=1234567", f"{self.folder}/code=891011")
        self.compare(self.folder / "mix")

    def test_the_package_reads_the_tokens_of_its_places(self):
        from atoll import InvalidArgument, TokenDataset
        folder = dataset(self.folder / "one", [3001, 17, 16, 900], 1)
        tokens = array.array("H")
        for number in range(4):
            tokens.frombytes((folder / f"train_{number}.bin").read_bytes()[1024:])
        data = TokenDataset(folder, CONTEXT, 3, isolate_documents=True)
        self.assertEqual(data.samples, [187 + 1 + 0 + 56])
        batch = data.batch(11, 500, 1, 3)
        for row in range(500):
            first = data.place(11 + row, 1, 3).first_token
            text, document, position = list(tokens[first:first + CONTEXT + 1]), 0, 0
            self.assertEqual(batch["input_ids"][row].tolist(), text[:-1])
            for at, token in enumerate(text[:-1]):
                self.assertEqual((batch["document_ids"][row][at], batch["position_ids"][row][at]), (document, position))
                self.assertEqual(batch["targets"][row][at], -100 if token == 7 else text[at + 1])
                document, position = (document + 1, 0) if token == 7 else (document, position + 1)
        again = data.batches(4)(1, 3, 19)
        next(again)
        self.assertEqual(next(again)["input_ids"].tolist(), data.batch(23, 4, 1, 3)["input_ids"].tolist())
        with self.assertRaisesRegex(InvalidArgument, "position 0 of partition 3 of 3 does not exist"):
            data.place(0, 3, 3)
        with self.assertRaisesRegex(InvalidArgument, "no file has the 5001 tokens of a sample"):
            TokenDataset(folder, 5000)

    def test_a_mixture_whose_dataset_changed_is_rejected_by_both(self):
        from atoll import FailedPrecondition, NotFound, TokenDataset
        for name, files in (("web", [4000]), ("code", [700])):
            dataset(self.folder / name, files, len(name))
        run("mix", "--out", self.folder / "mix", f"{self.folder}/web=1", f"{self.folder}/code=1")
        (self.folder / "code").rename(self.folder / "kept")
        with self.assertRaisesRegex(NotFound, "code/meta.json is missing"):
            TokenDataset(self.folder / "mix")
        dataset(self.folder / "code", [701], 3)
        with self.assertRaisesRegex(FailedPrecondition, "was changed"):
            TokenDataset(self.folder / "mix")
        with self.assertRaisesRegex(AssertionError, "was changed"):
            self.ordered(self.folder / "mix", 1, 0, 1, 0, 1)


if __name__ == "__main__":
    DATA = sys.argv.pop(1)
    unittest.main(verbosity=2)
