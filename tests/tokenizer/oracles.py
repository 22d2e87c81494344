"""tiktoken and tokenizers with the vocabularies of scripts/tokenizer_files.py."""
import base64
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def use_interop_python(missing):
    """Goes on in the Python of scripts/interop.sh; exits with 77 without it or without a package of `missing`."""
    python = subprocess.run([ROOT / "scripts/interop.sh", "--python"], capture_output=True, text=True, check=True).stdout.strip()
    how = "`scripts/setup.sh --groups interop` makes it"
    if not os.access(python, os.X_OK):
        print(f"skipped: there is no {python}; {how}")
        sys.exit(77)
    if os.environ.get("ATOLL_IN_INTEROP") != python:
        os.environ["ATOLL_IN_INTEROP"] = python
        os.execv(python, [python, "-B", *sys.argv])
    for package in missing:
        try:
            __import__(package)
        except ImportError:
            print(f"skipped: {python} has no {package}; {how}")
            sys.exit(77)


def files():
    """The folder of the real tokenizers; exits with 77 without it."""
    script = ROOT / "scripts/tokenizer_files.py"
    if subprocess.run([script, "--check"], capture_output=True, check=False).returncode != 0:
        print("skipped: the real tokenizers are missing or out of date; `scripts/setup.sh --groups interop` fetches them")
        sys.exit(77)
    return pathlib.Path(subprocess.run([script, "--folder"], capture_output=True, text=True, check=True).stdout.strip())


def tiktoken_encoding(name, file):
    """tiktoken's own encoding of that name, with the ranks of the file. Its downloads are replaced, and nothing else."""
    import tiktoken
    from tiktoken_ext import openai_public

    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file.read_bytes().splitlines())}
    openai_public.load_tiktoken_bpe = openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: ranks
    return tiktoken.Encoding(**getattr(openai_public, name)())


def hf_tokenizer(file):
    """A tokenizer that leaves special tokens in text alone, as training data needs it."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.encode_special_tokens = True
    return tokenizer


def train_smollm(folder, text):
    """A small tokenizer with the steps of SmolLM, whose own files are in no package. It has no token for rare bytes."""
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=["<|endoftext|>", "<|im_start|>", "<repo_name>"], show_progress=False)
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer.add_tokens(["<tool_call>", "<tool_calls>"])
    file = pathlib.Path(folder, "tokenizer.json")
    tokenizer.save(str(file))
    vocab = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    return file, len(vocab) + 2
