#!/usr/bin/env python3
"""Every tokenizer makes the tokens of tiktoken and tokenizers, from every format of its files.

Usage: oracle_test.py PROBE [--bytes N] [--random N] [--seed N] [--all-points] [--only LABEL]

  PROBE     atoll-tokenizer-probe
  --bytes   how much real text of this machine each tokenizer encodes (default: 2000000)
  --random  how many random texts (default: 1500)
"""
import argparse
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hard_text
import oracles
import real_text
from probe import Probe

DOCUMENT = 200_000  # characters of real text at a time


class Case:
    def __init__(self, label, file, encode, expected):
        self.label, self.file, self.encode, self.expected = label, file, encode, expected


def tiktoken_cases(folder):
    for name, encoding, size, end in (("gpt2", "gpt2", 50257, 50256), ("cl100k", "cl100k_base", 100277, 100257), ("o200k", "o200k_base", 200019, 199999)):
        oracle = oracles.tiktoken_encoding(encoding, folder / f"{name}.tiktoken")
        yield Case(f"{name}.tiktoken", folder / f"{name}.tiktoken", oracle.encode_ordinary, (name, size, end, 1))


def hf_encode(tokenizer):
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def hf_cases(folder, work, text):
    known = {"gpt2": (50257, 50256, 1), "llama3": (128256, 128001, 1), "qwen2": (151665, 151643, 0), "o200k": (200019, 199999, 1)}
    for name, info in known.items():
        encode = hf_encode(oracles.hf_tokenizer(folder / name / "tokenizer.json"))
        # The file of Qwen2.5, which has Qwen2's vocabulary and finds eight more tokens in a text.
        published = {"qwen2": "qwen2.5"}.get(name, name)
        yield Case(f"{name}/tokenizer.json", folder / name, encode, (published, *info))
        if name == "gpt2":
            yield Case("gpt2 vocab.json", folder / "gpt2-pair/vocab.json", encode, (name, *info))
    file, size = oracles.train_smollm(work, text)
    yield Case("smollm/tokenizer.json", file, hf_encode(oracles.hf_tokenizer(file)), (None, size, 0, 0))


def difference(want, got):
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    return f"token {at} of {len(want)} and {len(got)}: {want[at:at + 5]} and {got[at:at + 5]}"


class Comparison:
    def __init__(self, case, probe):
        self.case, self.probe, self.failures, self.texts = case, probe, [], 0

    def fail(self, text, why):
        self.failures.append(f"{self.case.label}: {text[:200]!r}: {why}")

    def same(self, data, what=("e", "s")):
        """`data` is bytes; the oracle sees them with U+FFFD for what is not UTF-8."""
        self.texts += 1
        want = list(self.case.encode(data.decode("utf-8", "replace")))
        for how in what:
            got = self.probe.encode(data, how)
            if got != want:
                self.fail(data, f"{how}: {difference(want, got)}")

    def back(self, data):
        """What was encoded comes back, also bytes that are no UTF-8."""
        if not self.case.expected[3]:
            return
        for text, how in ((data, "k"), (data.decode("utf-8", "replace").encode(), "e")):
            if self.probe.decode(self.probe.encode(text, how)) != text:
                self.fail(text, f"{how}: another text comes back")


def code_points(every):
    """All of them, or all outside the large blocks of equal letters and of nothing, and each 61st in these."""
    for point in range(0x110000):
        small = point < 0x3400 or 0xA000 <= point < 0xAC80 or 0xD780 <= point < 0xE010 or 0xF8F0 <= point < 0x17000 or 0x18C00 <= point < 0x20010
        if (every or small or point % 61 == 0) and not 0xD800 <= point < 0xE000:
            yield point


def each_code_point(comparison, every):
    """Between a letter, a space and a sign, so that its class decides; its normal form too."""
    points = list(code_points(every))
    for first in range(0, len(points), 4096):
        part = points[first:first + 4096]
        comparison.same("".join(f"a{chr(p)}b {chr(p)}1{chr(p)}!q{chr(p)}\u0316\u0301{chr(p)}'{chr(p)}" for p in part).encode(), ("e",))


def compare(case, probe, text, arguments):
    comparison = Comparison(case, probe)
    info = probe.info()
    if info != (case.expected[0] or info[0], *case.expected[1:]):
        comparison.fail("", f"is {info}, and {case.expected} is expected")
    for hard in hard_text.hard_texts():
        comparison.same(hard.encode())
        comparison.back(hard.encode())
    source = random.Random(arguments.seed)
    for data in (*hard_text.INVALID, *(hard_text.random_bytes(source) for _ in range(arguments.random // 3))):
        comparison.same(data)
        comparison.back(data)
    for _ in range(arguments.random):
        comparison.same(hard_text.random_text(source).encode())
    each_code_point(comparison, arguments.all_points)
    for first in range(0, len(text), DOCUMENT):
        document = text[first:first + DOCUMENT].encode()
        comparison.same(document, ("e",))
        comparison.back(document)
    return comparison


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe")
    parser.add_argument("--bytes", type=int, default=2_000_000)
    parser.add_argument("--random", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all-points", action="store_true", help="every code point, which takes long")
    parser.add_argument("--only", default="", help="cases whose label has this text")
    arguments = parser.parse_args()
    oracles.use_interop_python(("tiktoken", "tokenizers"))
    folder = oracles.files()
    text = real_text.collect(arguments.bytes)
    failures, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        for case in (*tiktoken_cases(folder), *hf_cases(folder, work, text[:1_000_000])):
            if arguments.only not in case.label:
                continue
            with Probe(arguments.probe, case.file) as probe:
                comparison = compare(case, probe, text, arguments)
            failures += comparison.failures
            print(f"{case.label}: {comparison.texts} texts, {len(text.encode())} bytes of real text, {len(comparison.failures)} differences, "
                  f"{time.monotonic() - begun:.0f} s", flush=True)
    for failure in failures[:20]:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
