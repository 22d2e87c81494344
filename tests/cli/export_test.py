#!/usr/bin/env python3
"""The outputs of atollctl that outlive it, with a real coordinator: files, descriptors of the shell, tokens.

An export says which run it is of; it is appended to what `>>FILE` opened; a read-only file and an empty name are refused; a
folder appears whole, and a run that imports it has the same bits; a token that nobody could read is revoked.

Usage: export_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import array
import json
import struct
import subprocess
import sys

from served_run import ServedRun, run_parts

CONFIG = """
run: {name: tiny, workers: 1, rounds: 3}
model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 0.001, batch: 2}
"""
WIDTH, CONTEXT, VOCABULARY = 8, 8, 256
USAGE, STORAGE, FILES = 2, 4, 6


def tensors():
    """Names and shapes of the configuration's model, as in GPT2LMHeadModel."""
    yield "transformer.wte.weight", [VOCABULARY, WIDTH]
    yield "transformer.wpe.weight", [CONTEXT, WIDTH]
    parts = {"ln_1": [WIDTH], "attn.c_attn": [WIDTH, 3 * WIDTH], "attn.c_proj": [WIDTH, WIDTH], "ln_2": [WIDTH],
             "mlp.c_fc": [WIDTH, 4 * WIDTH], "mlp.c_proj": [4 * WIDTH, WIDTH]}
    for name, shape in {**{f"h.0.{part}": shape for part, shape in parts.items()}, "ln_f": [WIDTH]}.items():
        yield f"transformer.{name}.weight", shape
        yield f"transformer.{name}.bias", shape[-1:]


def write_weights(path):
    header, offset = {}, 0
    for name, shape in tensors():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    values = array.array("f", (((i * 7919) % 10007 - 5000) / 4093 for i in range(offset // 4)))
    path.write_bytes(struct.pack("<Q", len(text)) + text + values.tobytes())


def read_weights(path):
    """The header and the data of a safetensors file."""
    contents = path.read_bytes()
    end = 8 + struct.unpack("<Q", contents[:8])[0]
    return json.loads(contents[8:end]), contents[end:]


class Run(ServedRun):
    def __init__(self, programs, folder, weights=None):
        if weights is None:
            weights = folder / "weights.safetensors"
            write_weights(weights)
        super().__init__(programs, folder, CONFIG, "--import", weights)

    def ctl(self, *arguments, **more):
        more = {"stdout": subprocess.PIPE, **more}
        return subprocess.run([self.programs / "atollctl", *self.there, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False, **more)

    def expect(self, holds, what):
        if not holds:
            self.complaints.append(what)

    def names_the_run(self):
        status = json.loads(self.ctl("status", "--json").stdout)
        done = self.ctl("export", "--out", "model")
        identity = f"; run {status['run_id']}, epoch {int(status['epoch']):016x}, from {self.data}\n"
        self.expect(done.stdout.endswith(identity) and done.stdout.startswith("wrote model: version 0, "), f"export: {done}")
        report = json.loads(self.ctl("--json", "export", "--out", "model").stdout)
        self.expect((report["run_id"], report["epoch"], report["coordinator"], report["version"])
                    == (status["run_id"], status["epoch"], self.data, 0), f"export --json: {report}")

    def appends(self):
        """What `>>FILE` opened is written to, whatever name the descriptor has; the report goes to standard error."""
        model = (self.folder / "model").read_bytes()
        log = self.folder / "appended"
        for name in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
            log.write_bytes(b"first\n")
            before = log.stat().st_ino
            with open(log, "ab") as opened:
                done = self.ctl("export", "--out", name, stdout=opened)
            self.expect(done.returncode == 0 and f"wrote {name}: version 0" in done.stderr, f"export --out {name}: {done}")
            self.expect(log.read_bytes() == b"first\n" + model, f"export --out {name} >>FILE wrote {log.stat().st_size} bytes")
            self.expect(log.stat().st_ino == before, f"export --out {name} replaced the file")
        log.write_bytes(b"first\n")
        with open(log, "ab") as opened:
            done = self.ctl("metrics", "export", "--out", f"/dev/fd/{opened.fileno()}", pass_fds=[opened.fileno()])
        self.expect(log.read_bytes().startswith(b"first\nunix_time,name,") and done.returncode == 0,
                    f"metrics export to a descriptor: {done}")

    def refuses_outputs(self):
        kept = self.folder / "kept"
        kept.write_bytes(b"old")
        kept.chmod(0o400)
        for command in (["export"], ["metrics", "export"]):
            done = self.ctl(*command, "--out", "kept")
            self.expect(done.returncode == FILES and "kept is read-only (mode 0400); give another file name" in done.stderr,
                        f"{command} onto a read-only file: {done}")
            done = self.ctl(*command, "--out", "")
            self.expect(done.returncode == USAGE and "--out" in done.stderr and "empty" in done.stderr,
                        f"{command} --out '': {done}")
        done = self.ctl("tokens", "create", "--role", "admin", "--name", "ann", "--out", "")
        self.expect(done.returncode == USAGE and "empty" in done.stderr, f"tokens create --out '': {done}")
        self.expect(kept.read_bytes() == b"old", "a read-only file was replaced")
        self.expect(not list(self.folder.glob("*.partial")), "a partial file is left")

    def writes_folders(self):
        tokenizer = self.folder / "tokenizer"
        tokenizer.mkdir()
        (tokenizer / "vocab.json").write_text('{"a": 0}')
        (tokenizer / "generation_config.json").write_text('{"bos_token_id": 1, "eos_token_id": 2}')
        done = self.ctl("export", "--format", "hf", "--out", "folder", "--tokenizer", "tokenizer")
        self.expect(done.returncode == 0 and done.stdout.startswith("wrote folder: version 0, 4 files, ")
                    and " as float32\n" in done.stdout, f"export --format hf: {done}")
        folder = self.folder / "folder"
        self.expect(sorted(path.name for path in folder.iterdir())
                    == ["config.json", "generation_config.json", "model.safetensors", "vocab.json"], f"{list(folder.iterdir())}")
        header, data = read_weights(folder / "model.safetensors")
        self.expect(header["__metadata__"] == {"format": "pt", "atoll_version": "0"}, f"metadata: {header['__metadata__']}")
        self.expect(data == read_weights(self.folder / "weights.safetensors")[1], "the folder has other values than the run")
        config = json.loads((folder / "config.json").read_text())
        self.expect((config["n_embd"], config["eos_token_id"], config["torch_dtype"]) == (WIDTH, 2, "float32"), f"{config}")
        done = self.ctl("export", "--format", "hf", "--out", "pieces", "--dtype", "bf16", "--shard-bytes", "2000", "--json")
        pieces = [name for name in json.loads(done.stdout)["files"] if name.startswith("model-")]
        index = json.loads((self.folder / "pieces/model.safetensors.index.json").read_text())
        self.expect(len(pieces) > 1 and set(index["weight_map"].values()) == set(pieces)
                    and index["metadata"]["total_size"] == len(data) // 2, f"export in pieces: {done}, {index}")

    def refuses_folders(self):
        (self.folder / "full").mkdir()
        (self.folder / "full/kept").write_text("kept")
        to_folder = ["export", "--format", "hf", "--out"]
        for arguments, code, words in (
                (["export", "--format", "hf"], USAGE, "--out DIR"),
                (["export", "--format", "gguf"], USAGE, "--format"),
                (["export", "--dtype", "bf16"], USAGE, "--dtype: needs --format hf"),
                (["export", "--shard-bytes", "9"], USAGE, "--shard-bytes: needs --format hf"),
                ([*to_folder, "new", "--dtype", "fp64"], USAGE, "--dtype"),
                ([*to_folder, "new", "--shard-bytes", "0"], USAGE, "--shard-bytes"),
                ([*to_folder, "new", "--shard-bytes", "-1"], USAGE, "--shard-bytes"),
                ([*to_folder, "new", "--tokenizer", "absent"], FILES, "absent"),
                ([*to_folder, "new", "--tokenizer", "full"], FILES, "full has no file of a tokenizer"),
                ([*to_folder, "full"], FILES, "--out full: full is a folder with files"),
                ([*to_folder, "run.yaml"], FILES, "--out run.yaml: run.yaml is not a folder"),
                ([*to_folder, "no/new"], FILES, "no/new.partial")):
            done = self.ctl(*arguments)
            self.expect(done.returncode == code and words in done.stderr, f"{arguments}: {done}")
        left = [path.name for path in self.folder.iterdir() if path.name.startswith("new") or path.name.endswith(".partial")]
        self.expect(not left, f"a refused export left {left}")
        self.expect([path.name for path in (self.folder / "full").iterdir()] == ["kept"], "a folder was changed")

    def imports_its_folder(self):
        """A run that begins with an exported folder exports the same bytes."""
        folder = self.folder / "again"
        folder.mkdir()
        again = Run(self.programs, folder, self.folder / "folder")
        try:
            done = again.ctl("export", "--out", "model")
            self.expect((folder / "model").read_bytes() == (self.folder / "model").read_bytes(), f"another model: {done}")
        finally:
            again.kill()

    def revokes_lost_tokens(self):
        for more in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = self.ctl("tokens", "create", "--role", "observer", "--name", "lost", *more, stdout=full)
            self.expect(done.returncode == STORAGE and "was revoked again" in done.stderr, f"tokens create on a full disk: {done}")
        made = [token for token in json.loads(self.ctl("tokens", "list", "--json").stdout)["tokens"] if token["name"] == "lost"]
        self.expect(len(made) == 2 and all(int(token["revoked_unix_nanos"]) > 0 for token in made), f"tokens are in force: {made}")


if __name__ == "__main__":
    sys.exit(run_parts("atoll-export-", Run, (Run.names_the_run, Run.appends, Run.refuses_outputs, Run.writes_folders,
                                              Run.refuses_folders, Run.imports_its_folder, Run.revokes_lost_tokens)))
