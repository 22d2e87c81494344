"""Token files that are damaged, or change while they are read: no programs needed."""
import array
import hashlib
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

from fixture import PATIENCE_S, python_environment, wait_for

import atoll
from atoll import token_check

CONTEXT, VOCABULARY, TOKENS, HEADER_BYTES = 16, 500, 4000, 1024


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def write(folder, **fields):
    """A dataset of one training file. `fields`: replace those of meta.json, before its fingerprint."""
    folder.mkdir()
    meta = {"tokenizer": "gpt2", "vocabulary": VOCABULARY, "train": [], "validation": {}}
    for name, size in (("train.bin", TOKENS), ("val.bin", 100)):
        tokens = array.array("H", [i * 7 % VOCABULARY for i in range(size)])
        (folder / name).write_bytes(array.array("i", [20240520, 1, size] + [0] * 253).tobytes() + tokens.tobytes())
        entry = {"name": name, "tokens": size, "sha256": sha256(tokens.tobytes())}
        if name == "val.bin":
            meta["validation"] = entry
        else:
            meta["train"].append(entry)
    meta.update(fields)
    lines = [f"{meta['tokenizer']} {meta['vocabulary']}", *(f"{e['name']} {e['tokens']} {e['sha256']}" for e in [*meta["train"], meta["validation"]])]
    meta["fingerprint"] = sha256("".join(f"{line}\n" for line in lines).encode())
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def fails(dataset):
    """Whether the next batch is a DataLoss."""
    try:
        dataset.batch(0, 1)
    except atoll.DataLoss:
        return True
    return False


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = write(self.folder / "data")
        self.file = self.data / "train.bin"

    def open(self):
        return atoll.TokenDataset(self.data, context=CONTEXT)


class RunTest(FilesTest):
    def test_files_of_another_tokenizer_or_a_larger_vocabulary_are_rejected(self):
        def run(tokenizer, **model):
            return types.SimpleNamespace(context=CONTEXT, config={"config": {"data": {"tokenizer": tokenizer}, "run": {"seed": 1}, "model": model}})

        gpt = {"vocabulary": VOCABULARY}
        for good in (run("gpt2", gpt=gpt), run("none", gpt=gpt), run("bytes", external={})):
            self.assertEqual(self.open().for_run(good).batch(0, 1)["input_ids"].shape[1], CONTEXT)
        with self.assertRaisesRegex(atoll.InvalidArgument, "data: its tokens are those of gpt2, and data.tokenizer of the run is cl100k"):
            self.open().for_run(run("cl100k", gpt=gpt))
        with self.assertRaisesRegex(atoll.InvalidArgument, f"model.gpt.vocabulary is {VOCABULARY - 1}"):
            self.open().for_run(run("gpt2", gpt={"vocabulary": VOCABULARY - 1}))


class DamageTest(FilesTest):
    def test_a_file_that_is_truncated_while_it_is_open(self):
        """In another process: a mapped file would end it with SIGBUS."""
        program = ("import atoll, os, sys\n"
                   f"files = atoll.TokenDataset(sys.argv[1], context={CONTEXT})\n"
                   f"os.truncate(sys.argv[1] + '/train.bin', {HEADER_BYTES + 100})\n"
                   "for i in range(50): files.batch(i, 4)\n")
        done = subprocess.run([sys.executable, "-c", program, str(self.data)], capture_output=True, text=True, check=False, env=python_environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"DataLoss: token file \S+train.bin: byte \d+ is missing, and was there.*truncated.*copy the file again")

    def test_a_token_outside_the_vocabulary(self):
        files = atoll.TokenDataset(write(self.folder / "small", vocabulary=300), context=CONTEXT)
        files.verify()
        with self.assertRaisesRegex(atoll.DataLoss, r"train.bin: token [34]\d\d at position \d+ is outside the vocabulary of 300"):
            for position in range(files.samples[0]):
                files.batch(position, 1)

    def test_the_digest_of_a_damaged_file(self):
        overwrite(self.file, HEADER_BYTES + 2 * 100, b"\0\0")
        files = self.open()
        with self.assertRaisesRegex(atoll.DataLoss, "train.bin: the SHA-256 of its tokens is not the one in meta.json.*copy the file again"):
            files.verify()
        batches = files.batches(2)(0, 1, 0)
        wait_for(lambda: fails(files), "the comparison")
        with self.assertRaisesRegex(atoll.DataLoss, "train.bin: the SHA-256"):
            next(batches)

    def test_the_held_out_text_is_compared_too(self):
        overwrite(self.data / "val.bin", HEADER_BYTES, b"\1\0")
        with self.assertRaisesRegex(atoll.DataLoss, "val.bin: the SHA-256"):
            self.open().verify()

    def test_a_part_of_a_file_has_its_own_digest(self):
        tokens = self.file.read_bytes()[HEADER_BYTES:]
        entry = {"name": "../data/train.bin", "tokens": 1000, "sha256": sha256(tokens[600:2600]), "first": 300, "file_tokens": TOKENS}
        files = atoll.TokenDataset(write(self.folder / "part", train=[entry]), context=CONTEXT)
        files.verify()
        self.assertEqual(files.sample(0)[0], (300 + files.place(0).first_token) * 7 % VOCABULARY)
        overwrite(self.file, HEADER_BYTES + 3000, b"\0\0")
        files.verify()
        overwrite(self.file, HEADER_BYTES + 2000, b"\1\0")
        with self.assertRaises(atoll.DataLoss):
            files.verify()

    def test_a_file_that_is_written_to_later(self):
        with mock.patch.object(token_check, "LOOK_EVERY_S", 0.05):
            files = self.open()
            files.batch(0, 1)
            files.verify()
            self.assertFalse(fails(files))
            overwrite(self.file, HEADER_BYTES + 2 * (TOKENS - 1), b"\0\0")
            wait_for(lambda: fails(files), "the comparison")


class DescriptionTest(FilesTest):
    def rejects(self, text, kind=atoll.InvalidArgument):
        with self.assertRaisesRegex(kind, text):
            self.open()

    def test_a_field_that_is_damaged_is_named(self):
        path = self.data / "meta.json"
        whole = path.read_text()
        first = "train[0]"
        for damage, field, problem in (
                (lambda m: m.update(train=[]), "train", "lists no file"),
                (lambda m: m.update(train="x"), "train", 'it is "x"; expected a list'),
                (lambda m: m.update(train=None), "train", "it is null; expected a list"),
                (lambda m: m.pop("train"), "train", "it is missing; expected a list"),
                (lambda m: m.update(train=[3]), first, "must be an object"),
                (lambda m: m.update(validation=[]), "validation", "it is \\[\\]; expected an object"),
                (lambda m: m.pop("fingerprint"), "fingerprint", "it is missing; expected a text"),
                (lambda m: m.update(vocabulary=None), "vocabulary", "it is null; expected a whole number"),
                (lambda m: m.update(vocabulary=-1), "vocabulary", "expected a whole number"),
                (lambda m: m.update(vocabulary=2 ** 32), "vocabulary", "expected a whole number from 0 to 4294967295"),
                (lambda m: m.update(vocabulary=True), "vocabulary", "it is true; expected a whole number"),
                (lambda m: m.update(end_of_text="x"), "end_of_text", "expected a whole number"),
                (lambda m: m["train"][0].update(tokens=-5), first + ".tokens", "expected a whole number"),
                (lambda m: m["train"][0].update(tokens="z"), first + ".tokens", "expected a whole number"),
                (lambda m: m["train"][0].update(first=5), first + ".tokens", "lists tokens 5 to 4005 of 4000"),
                (lambda m: m["train"][0].update(first=-5), first + ".first", "expected a whole number"),
                (lambda m: m["train"][0].update(first=1, file_tokens=TOKENS), first + ".tokens", "lists tokens 1 to 4001 of 4000"),
                (lambda m: m["train"][0].pop("name"), first + ".name", "it is missing; expected a text"),
                (lambda m: m["train"][0].update(name="a\0b"), first + ".name", "no name of a file"),
                (lambda m: m["train"][0].update(sha256=7), first + ".sha256", "it is 7; expected a text"),
                (lambda m: m["validation"].pop("sha256"), "validation.sha256", "it is missing; expected a text"),
                (lambda m: m["train"][0].update(tokens=3000), "fingerprint", "not that of the other fields"),
                (lambda m: m.update(tokenizer="\ud800"), "fingerprint", "not that of the other fields"),
                (lambda m: m.update(mixture=[]), "mixture", "lists 0 datasets"),
                (lambda m: m.update(mixture={}), "mixture", "it is {}; expected a list"),
                (lambda m: m.update(mixture=[{"folder": "a", "weight": 0, "fingerprint": ""}] * 2), "mixture", "weights must be above 0"),
                (lambda m: m.update(mixture=[{"folder": "a", "weight": 1}]), r"mixture[0].fingerprint", "it is missing")):
            meta = json.loads(whole)
            damage(meta)
            path.write_text(json.dumps(meta))
            with self.subTest(field=field, problem=problem):
                self.rejects(f"meta.json: the field '{re.escape(field)}'.*{problem}.*copy the dataset again")

    def test_a_text_that_is_no_description(self):
        for text, problem in ((b"[]", "the contents must be an object"), (b"\xff\xfe", "can't decode byte"), (b"", "Expecting value"),
                              (b"[" * 100000, "recursion"), (b"{", "Expecting")):
            (self.data / "meta.json").write_bytes(text)
            self.rejects(f"meta.json: .*{problem}.*copy the dataset again")

    def test_files_that_are_missing_or_others(self):
        overwrite(self.file, 0, bytes(8))
        self.rejects("train.bin is no token file of llm.c, Megatron or datatrove")
        os.truncate(self.file, HEADER_BYTES + 1001)
        self.rejects("train.bin is no token file")
        shutil.rmtree(self.data)
        write(self.data)
        os.truncate(self.file, HEADER_BYTES + 1001)
        self.rejects("train.bin: 500.5 tokens, but meta.json says 4000")
        self.file.unlink()
        self.rejects("train.bin is missing", atoll.NotFound)
        os.mkfifo(self.file)
        self.rejects("train.bin is no regular file")
        shutil.rmtree(self.data)
        self.rejects("meta.json is missing", atoll.NotFound)
        self.data.write_text("")
        self.rejects("meta.json is missing", atoll.NotFound)


class CopiesTest(FilesTest):
    def checking(self):
        return [thread for thread in threading.enumerate() if thread.name == "atoll-check-tokens"]

    def test_the_thread_ends_with_the_dataset(self):
        files = self.open()
        self.assertEqual(self.checking(), [])
        open_before = len(os.listdir("/proc/self/fd"))
        files.batch(0, 1)
        self.assertEqual(len(self.checking()), 1)
        del files
        self.assertEqual(self.checking(), [])
        self.assertEqual(len(os.listdir("/proc/self/fd")), open_before - 2)

    def test_copies_in_other_processes_read_and_check(self):
        files = self.open()
        expected = files.batch(3, 2)["input_ids"].tolist()
        self.assertEqual(pickle.loads(pickle.dumps(files)).batch(3, 2)["input_ids"].tolist(), expected)
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                self.assertEqual(pool.apply(files.batch, (3, 2))["input_ids"].tolist(), expected)
        overwrite(self.file, HEADER_BYTES + 2 * (TOKENS - 1), b"\0\0")
        with multiprocessing.get_context("fork").Pool(1) as pool:
            self.assertTrue(pool.apply_async(_fails_at_last, (files,)).get(PATIENCE_S))

    def test_a_program_ends_while_files_are_compared(self):
        program = f"import atoll, sys; atoll.TokenDataset(sys.argv[1], context={CONTEXT}).batch(0, 1); files = atoll.TokenDataset(sys.argv[1], " \
                  f"context={CONTEXT}); files.batch(0, 1)"
        done = subprocess.run([sys.executable, "-c", program, str(self.data)], capture_output=True, text=True, check=False, env=python_environment(),
                              timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


def _fails_at_last(files):
    wait_for(lambda: fails(files), "the comparison")
    return True


if __name__ == "__main__":
    unittest.main()
