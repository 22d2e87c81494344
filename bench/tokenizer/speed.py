#!/usr/bin/env python3
"""Speed of Atoll's tokenizers beside tiktoken and Hugging Face's tokenizers, in one run, as a table.

Usage: speed.py PROBE [--bytes N] [--repeat N] [--only NAME] [--hostile]

  PROBE      atoll-tokenizer-probe (the target of that name)
  --bytes    real text of this machine (default: 20000000), divided into documents at line ends
  --repeat   the best of so many runs counts (default: 3)
  --hostile  also texts of one letter, of 1, 2 and 4 MB, on Atoll alone

Each program encodes the same documents, without special tokens. Needs scripts/setup.sh --groups interop.
"""
import argparse
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tokenizer"))
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import oracles
import real_text
from probe import Probe

DOCUMENT = 50_000


def documents(text):
    found, begin = [], 0
    while begin < len(text):
        end = text.find("\n", begin + DOCUMENT) + 1 or len(text)
        found.append(text[begin:end])
        begin = end
    return found


def best(repeat, run):
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def with_threads(threads, encode, texts):
    """Runs encode on a share of the texts in each thread; both oracles release the interpreter's lock."""
    def work(share):
        for text in share:
            encode(text)

    workers = [threading.Thread(target=work, args=(texts[first::threads],)) for first in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def row(name, size, ours, theirs):
    print(f"| {name} | " + " | ".join("" if seconds is None else f"{size / seconds / 1e6:.1f}" for seconds in (*ours, *theirs)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe")
    parser.add_argument("--bytes", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="tokenizers whose name has this text")
    parser.add_argument("--hostile", action="store_true")
    arguments = parser.parse_args()
    oracles.use_interop_python(("tiktoken", "tokenizers"))
    folder = oracles.files()
    text = real_text.collect(arguments.bytes)
    data, texts = text.encode(), documents(text)
    print("| tokenizer | Atoll, 1 thread | Atoll, 2 | tiktoken, 1 | tiktoken, 2 | tokenizers, 1 | tokenizers, 2 |\n|---|---|---|---|---|---|---|")
    for name, file, encoding in (("gpt2", "gpt2", "gpt2"), ("cl100k", "cl100k.tiktoken", "cl100k_base"), ("o200k", "o200k", "o200k_base"),
                                 ("llama3", "llama3", None), ("qwen2", "qwen2", None)):
        if arguments.only not in name:
            continue
        encoders = [oracles.tiktoken_encoding(encoding, folder / f"{name}.tiktoken").encode_ordinary if encoding else None]
        tokenizer = oracles.hf_tokenizer(folder / name / "tokenizer.json") if (folder / name).is_dir() else None
        encoders.append((lambda part, t=tokenizer: t.encode(part, add_special_tokens=False)) if tokenizer else None)
        with Probe(arguments.probe, folder / file) as probe:
            ours = [min(probe.seconds(data, threads)[0] for _ in range(arguments.repeat)) for threads in (1, 2)]
            theirs = [best(arguments.repeat, lambda t=threads, e=encode: with_threads(t, e, texts)) if encode else None
                      for encode in encoders for threads in (1, 2)]
            row(name, len(data), ours, theirs)
            if arguments.hostile:
                for megabytes in (1, 2, 4):
                    seconds = min(probe.seconds(b"a" * (megabytes * 1_000_000))[0] for _ in range(arguments.repeat))
                    row(f"{name}, {megabytes} MB of one letter", megabytes * 1e6, (seconds, None), (None,) * 4)


if __name__ == "__main__":
    sys.exit(main())
