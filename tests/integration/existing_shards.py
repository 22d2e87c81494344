#!/usr/bin/env python3
"""Token shards of llm.c and modded-nanogpt, adopted as they are: `atoll-data adopt`, `inspect`, and a worker that trains.

The shards are written here, by the layout of llm.c's dev/data/data_common.py (write_datafile) and by nothing of ours: 256
int32 (20240520, 1, number of tokens, zeros), then uint16 GPT-2 tokens. One folder has a validation shard, the other has not.
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


def make_folder(folder, validation):
    folder.mkdir()
    write_shard(folder / "fineweb_train_000001.bin", tokens_of(1, 3000))
    write_shard(folder / "fineweb_train_000002.bin", tokens_of(2, 2000))
    if validation:
        write_shard(folder / "fineweb_val_000000.bin", tokens_of(3, 500))
    return folder


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.bin")}


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
    for name, validation, trained, held_out in (("with-validation", True, 5000, 500), ("without-validation", False, 4750, 250)):
        shards = make_folder(folder / name, validation)
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
        write_shard(shards / "fineweb_train_000001.bin", tokens_of(7, 3000))
        expect(complaints, inspect, 6, ["fineweb_train_000001.bin", "SHA-256"])
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    return judge("atoll-shards-", parser.parse_args(), measure)


if __name__ == "__main__":
    sys.exit(main())
