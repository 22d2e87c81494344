#!/usr/bin/env python3
"""Token shards of other programs, adopted as they are: `atoll-data adopt`, `inspect`, and a worker that trains.

The shards are written here, by nothing of ours: llm.c's and modded-nanogpt's by dev/data/data_common.py (write_datafile: 256
int32 (20240520, 1, number of tokens, zeros), then uint16 GPT-2 tokens), Megatron's by megatron/core/datasets/indexed_dataset.py,
datatrove's by pipeline/tokens/tokenizer.py. One folder of llm.c has a validation shard; the others have none.
It must show, for each: without meta.json, `inspect` and a worker refuse the folder and name the command that helps; `adopt`
changes no shard; `inspect` accepts the folder; a run with `tokenizer: gpt2` trains a round on it and evaluates what is held
out; a shard that changed afterwards is noticed.

Usage: existing_shards.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import array
import hashlib
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

from real_run import RealRun, judge

VOCABULARY, PATIENCE_S = 50257, 120
CONFIG = """run: {name: shards, workers: 1, rounds: 1, seed: 3}
model: {gpt: {layers: 1, heads: 1, width: 16, context: 16, vocabulary: 50304}}
data: {tokenizer: gpt2}
inner: {steps: 4, learning_rate: 0.001, warmup_steps: 1, batch: 4}
round: {deadline_s: 60}
evaluation: {every: 1}
checkpoint: {shards: 1}
"""


def write_shard(path, tokens):
    """As llm.c's write_datafile."""
    header = array.array("i", [0] * 256)
    header[0], header[1], header[2] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + array.array("H", tokens).tobytes())


def tokens_of(seed, count):
    draw = random.Random(seed)
    # GPT-2's end of text is the last token of its vocabulary.
    return [50256] + [draw.randrange(VOCABULARY) for _ in range(count - 1)]


def write_megatron(path, tokens):
    """Two sequences, each a document of its own."""
    path.write_bytes(array.array("H", tokens).tobytes())
    lengths = (1000, len(tokens) - 1000)
    path.with_suffix(".idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ2i2q3q", 1, 8, 2, 3, *lengths, 0, 2000, 0, 1, 2))


def write_datatrove(path, tokens):
    path.write_bytes(array.array("I", tokens).tobytes())
    path.with_name(path.name + ".index").write_bytes(struct.pack("<2Q", 1000, len(tokens)))
    path.with_name(path.name + ".metadata").write_text(f"gpt2|4\n{len(tokens)}\n{len(tokens)} T")


# By the kind of a folder: how a file is written, and the names of its files.
KINDS = {
    "with-validation": (write_shard, ("fineweb_train_000001.bin", "fineweb_train_000002.bin", "fineweb_val_000000.bin")),
    "without-validation": (write_shard, ("fineweb_train_000001.bin", "fineweb_train_000002.bin")),
    "megatron": (write_megatron, ("a_text_document.bin", "b_text_document.bin")),
    "datatrove": (write_datatrove, ("00000_00000_shuffled.ds", "00001_00000_shuffled.ds")),
}


def make_folder(folder, kind):
    folder.mkdir()
    write, names = KINDS[kind]
    for number, (name, count) in enumerate(zip(names, (3000, 2000, 500)), 1):
        write(folder / name, tokens_of(number, count))
    return folder


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.name != "meta.json"}


def expect(complaints, command, code, words):
    name = f"{pathlib.Path(command[0]).name} {command[1]}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        complaints.append(f"{name}: still runs after 20 s")
        return
    said = done.stdout + done.stderr
    missing = [word for word in words if word not in said]
    if done.returncode != code or missing:
        complaints.append(f"{name}: exit code {done.returncode}, expected {code}; does not say {missing}: {said[-800:]}")


def train(folder, programs, tokens, complaints):
    """One round by a real worker; the validation loss of what it made."""
    run = RealRun(folder, programs, CONFIG)
    try:
        run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"])
        run.wait_for(lambda: (run.status() or {}).get("state") == "RUN_STATE_FINISHED", PATIENCE_S, "the end of the run")
        run.wait_for(lambda: any(point["name"] == "validation/loss" for point in run.metrics()), PATIENCE_S, "an evaluation")
        losses = [point["value"] for point in run.metrics() if point["name"] == "validation/loss"]
        # Random tokens: nothing can be learnt, so the loss stays at that of a guess.
        if not all(abs(loss - math.log(50304)) < 1 for loss in losses):
            complaints.append(f"validation losses {losses}, expected about {math.log(50304):.2f}")
        print(f"{tokens.name}: version {run.head()}, validation loss {losses[-1]:.3f}")
    finally:
        run.end()


def measure(folder, programs):
    complaints = []
    for name, (write, names) in KINDS.items():
        trained, held_out = (5000, 500) if len(names) == 3 else (4750, 250)
        shards = make_folder(folder / name, name)
        before = digests(shards)
        adopt = [programs / "atoll-data", "adopt", shards, "--tokenizer", "gpt2", "--vocabulary"]
        inspect = [programs / "atoll-data", "inspect", shards]
        worker = [programs / "atoll-worker", "--coordinator", "127.0.0.1:1", "--data", shards, "--state-dir", folder / "state"]
        expect(complaints, inspect, 6, ["atoll-data adopt", str(shards)])
        expect(complaints, worker, 6, ["atoll-data adopt", str(shards)])
        expect(complaints, [*adopt, "256"], 6, ["outside the vocabulary of 256", "--vocabulary"])
        expect(complaints, [*adopt, str(VOCABULARY)], 0, [f"{trained} tokens", f"{held_out} tokens"])
        expect(complaints, [*adopt, str(VOCABULARY)], 2, ["already has a meta.json"])
        expect(complaints, inspect, 0, ["gpt2 (vocabulary 50257)", f"{trained} tokens", f"{held_out} tokens"])
        if digests(shards) != before:
            complaints.append(f"{name}: a shard was changed")
        if not (shards / "meta.json").exists():
            continue
        train(folder / f"run-{name}", programs, shards, complaints)
        described = json.loads((shards / "meta.json").read_text())
        if sum(entry["tokens"] for entry in described["train"]) != trained:
            complaints.append(f"{name}: meta.json describes {described}")
        write(shards / names[0], tokens_of(7, 3000))
        expect(complaints, inspect, 6, [names[0], "SHA-256"])
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    return judge("atoll-shards-", parser.parse_args(), measure)


if __name__ == "__main__":
    sys.exit(main())
