"""How guide_commands.py runs each page of docs/guides: which terminal runs the blocks of a heading, and what the page takes as given.

A page is a story. Its blocks run from top to bottom, each terminal being one bash. The terminal "here" begins in a checkout of the
repository. The other terminals are machines: each has a home folder with a
checkout in ~/atoll, and a network of its own in which coordinator.example.org is another machine. Folders under /srv are in memory.
"""
import dataclasses

# The machines that the guides name. Each is a network of its own; /etc/hosts of the test has these lines.
HUB = "coordinator.example.org"
HOSTS = {HUB: "10.77.0.1", "gpu1.example.org": "10.77.1.2", "gpu2.example.org": "10.77.2.2"}

# Where a guide tells the reader to write another name, by machine: (in the text, in the test).
SUBSTITUTIONS = {"gpu2.example.org": (("gpu1", "gpu2"),)}

# Commands that reach other machines, and what stands in for them. A host is a folder: machines/HOST is its user's home.
SHIMS = {
    "scp": """#!/bin/bash
# scp [-r] FILE... HOST:FOLDER
set -e
target=${!#}
folder={folder}/machines/${target%%:*}/${target#*:}
[ -d "$folder" ] || { echo "scp: there is no folder ${target#*:} on ${target%%:*}" >&2; exit 1; }
set -- "${@:1:$#-1}"
[ "$1" != -r ] || shift
cp -r "$@" "$folder"
""",
}

# Rounds of a run. A page that waits for the end of its run gets a short one. The run of every other page cannot end, so
# no command comes too late on a fast machine.
SHORT = 6
ENDLESS = 1000000


def rounds_of(text):
    return SHORT if "--until-finished" in text else ENDLESS


# configs/small.yaml with a model that trains on two busy cores in seconds. The field names and the lines' form are those of the file,
# so that the text's commands find what they change. {rounds}: rounds_of() of the page.
SMALL = (
    (r"(?m)^  rounds: 20$", "  rounds: {rounds}"),
    (r"(?m)^    layers: 4$", "    layers: 1"),
    (r"(?m)^    heads: 4$", "    heads: 2"),
    (r"(?m)^    width: 128$", "    width: 32"),
    (r"(?m)^  steps: 50$", "  steps: {steps}"),
    (r"(?m)^  warmup_steps: 100$", "  warmup_steps: 10"),
)

# What a page may take as given: the programs in PATH, token files, and a configuration.
FILES = """
PATH=$PWD/build/release/bin:$PATH
atoll-data tokenize --out tokens README.md docs/*.md
cp configs/small.yaml run.yaml
"""

# What a page may take as given: a run with two workers that trains, in the current folder.
A_RUN = """
PATH=$PWD/build/release/bin:$PATH
atoll-data tokenize --out tokens README.md docs/*.md
sed 's/^  workers: 4$/  workers: 2/' configs/small.yaml >run.yaml
echo 'checkpoint: {every: 5, keep: 1000}' >>run.yaml
atoll-coordinator --config run.yaml --data-dir run1 --launcher process --worker-arg=--data=tokens --worker-arg=--threads=1 \\
  >coordinator.log 2>&1 &
until [ "$(atollctl status --json | atollctl field fragments.0.version)" -ge 2 ]; do sleep 0.2; done
"""

# A folder of token shards as llm.c writes them: a header of 256 numbers (magic, version, tokens), then tokens of two bytes.
SHARDS = """
mkdir fineweb10B
python3 - <<'END'
import array
for name, tokens in (("fineweb_train_000001.bin", 5000), ("fineweb_val_000000.bin", 1000)):
    with open("fineweb10B/" + name, "wb") as file:
        array.array("i", [20240520, 1, tokens] + [0] * 253).tofile(file)
        array.array("H", [50256 - i for i in range(tokens)]).tofile(file)
END
"""


@dataclasses.dataclass(frozen=True)
class Rule:
    """`headings`: the headings whose blocks run, each with the terminals that run them; none means "here"."""

    headings: dict
    given: str = ""  # commands that run first, in the terminal "here": what the page presupposes
    before: dict = dataclasses.field(default_factory=dict)  # heading: commands before its first block, to wait as a slower reader would
    steps: int = 10
    python: str = ""  # "system" or "interop": the python3 in PATH is /usr/bin's, or that of scripts/interop.sh


# A tokenizer with GPT-2's pattern, and a dump of JSON lines, a part of which is packed.
A_DUMP = """
PATH=$PWD/build/release/bin:$PATH
mkdir -p work/gpt2 work/dump
cd work
python3 - <<'END'
import gzip
import json
import random
points = [b if 32 < b < 127 or 160 < b and b != 173 else None for b in range(256)]
spare = iter(range(256, 512))
vocab = {chr(next(spare) if point is None else point): byte for byte, point in enumerate(points)}
vocab.update({"th": 256, "the": 257, "\u0120the": 258})
with open("gpt2/tokenizer.json", "w") as file:
    json.dump({"added_tokens": [{"id": 259, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False,
                                 "normalized": False, "special": True}],
               "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
               "model": {"type": "BPE", "vocab": vocab, "merges": ["t h", "th e", "\u0120 the"]}}, file)
draw = random.Random(1)
for part in (1, 2, 3):
    lines = "".join(json.dumps({"id": i, "text": " ".join(draw.choices(["the", "quick", "fox", "jumps"], k=40))}) + "\\n"
                    for i in range(200))
    gzip.open(f"dump/part-{part}.jsonl.gz", "wt").write(lines)
END
"""

# Shards as modded-nanogpt, Megatron-LM and datatrove write them.
ALL_SHARDS = """
PATH=$PWD/build/release/bin:$PATH
mkdir work
cd work
""" + SHARDS + """
mkdir megatron datatrove
python3 - <<'END'
import array
import struct
with open("megatron/text_document.bin", "wb") as file:
    array.array("H", range(9000)).tofile(file)
with open("megatron/text_document.idx", "wb") as file:
    file.write(b"MMIDIDX\\0\\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + struct.pack("<2i2q3q", 4000, 5000, 0, 8000, 0, 1, 2))
with open("datatrove/00000_00000_shuffled.ds", "wb") as file:
    array.array("H", range(7000)).tofile(file)
with open("datatrove/00000_00000_shuffled.ds.metadata", "w") as file:
    file.write("gpt2|2\\n7000\\n7 kT")
END
"""

RULES = {
    "prepare-your-own-text.md": Rule({
        "Make a dataset": (), "Choose what is held out": (), "Shuffle, and set the size of the files": (), "Bad lines": (),
        "Check the result": (), "Change it later": (), "Mix several datasets": ()}, given=A_DUMP),
    "pretokenised-shards.md": Rule({
        "Adopt the folder": (), "Check it, and copy it": (), "Write llm.c's format": (), "Mix several folders": ()}, given=ALL_SHARDS),
    "train-on-your-own-text.md": Rule({"Prepare the text": (), "Describe the run": (), "Train": (), "Use the model": ()},
                                      given=SHARDS),
    "three-machines-over-tls.md": Rule({
        "On the coordinator: the run and the certificates": (HUB,), "On the coordinator: the text": (HUB,),
        "On the coordinator: start": (HUB,), "On each worker": ("gpu1.example.org", "gpu2.example.org"), "Watch it": (HUB,)},
        before={"On each worker": "until (exec 3<>/dev/tcp/coordinator.example.org/7600) 2>/dev/null; do sleep 0.2; done"}),
    "extend-branch-restore.md": Rule({
        "Keep a state": (), "Extend": (), "Branch": (), "Restore": (), "Begin from a file of weights": ()}, given=A_RUN),
    "add-and-remove-workers.md": Rule({
        "See who is there": (), "With a launcher": (), "Without a launcher": (), "Remove a worker": (), "How many can join": (),
        "Workers of different speed": ()}, given=A_RUN),
    "codec-and-h-for-your-link.md": Rule({"Describe the run": (), "Compare choices": ()}, given="PATH=$PWD/build/release/bin:$PATH"),
    "when-something-goes-wrong.md": Rule({
        "Look": (), "The loss jumped": (), "Is what is on disk right?": (), "Ask for help": ()},
        given=A_RUN, before={"The loss jumped": "until [ -d run1/checkpoints/auto-v5 ]; do sleep 0.2; done"}),
    "start-and-stop.md": Rule({"Before the first round": (), "Start": (), "Stop, and start again": ()}, given=FILES),
    "security.md": Rule({"Make certificates": (), "Use tokens": (), "Rotate": ()}, given=FILES),
    "change-a-run.md": Rule({"Change a setting now": (), "More rounds": ()}, given=A_RUN),
    "monitoring.md": Rule({"On the command line": (), "Prometheus and Grafana": (), "Follow one call through the logs": ()},
                          given=A_RUN),
    "backup-and-restore.md": Rule({
        "Create checkpoints": (), "Copy them elsewhere": (), "Restore": (), "Start from a copy of a checkpoint": (),
        "Start from an older copy of the data directory": (), "Verify": ()}, given=A_RUN),
    "gpus-and-islands.md": Rule({
        "run.workers with islands": (), "One host": (), "If a rank is lost": (), "Stop, and change the number of ranks": (),
        "Several hosts": ()}, given=FILES),
    "upgrade.md": Rule({"In place": ()}, given=A_RUN),
    "own-pytorch-loop.md": Rule({
        "Install": (), "Describe the run": (), "Write the loop": (), "Start": (), "Stop, and start again": (), "Use the model": (),
        "The end": ()},
        before={"Stop, and start again": "until [ \"$(atollctl status --json | atollctl field fragments.0.version)\" -ge 2 ]; do sleep 0.2; done",
                "The end": "atollctl run stop --yes"},  # five minutes otherwise
        python="system"),
    "torchscript-model.md": Rule({"Save the model": (), "Describe the run": (), "Train": (), "Use the result": ()}, python="system"),
    "hugging-face-checkpoint.md": Rule({
        "Get the checkpoint": (), "Describe the run": (), "Train": (), "Export the result": (), "Load it in transformers": ()}, python="interop"),
    "use-the-result.md": Rule({"Get the tokenizer": (), "Export": (), "transformers": ()}, given=A_RUN, python="interop"),
    "evaluate.md": Rule({"On text": (), "Compare models": (), "Compare runs": (), "On questions": (), "While the run goes on": (),
                         "From another program": ()}, given=A_RUN),
    "hugging-face-trainer.md": Rule({"Install": (), "Describe the run": (), "Add the callback": (), "Start": ()}, python="interop"),
}
