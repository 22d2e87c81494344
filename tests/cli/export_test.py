#!/usr/bin/env python3
"""The outputs of atollctl that outlive it, with a real coordinator: files, descriptors of the shell, tokens.

An export says which run it is of; it is appended to what `>>FILE` opened; a read-only file and an empty name are refused; a
folder appears whole, and a run that imports it has the same bits; the admin port has the same bits, older versions, checkpoints
and the momentum; `atoll-model generate` (where it is built) reads them too; a token that nobody could read is revoked.

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
USAGE, STORAGE, REJECTED, FILES = 2, 4, 5, 6


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
    def __init__(self, programs, folder, weights=None, config=CONFIG):
        if weights is None:
            weights = folder / "weights.safetensors"
            write_weights(weights)
        super().__init__(programs, folder, config, "--import", weights)

    def ctl(self, *arguments, there=None, **more):
        more = {"stdout": subprocess.PIPE, **more}
        return subprocess.run([self.programs / "atollctl", *(there or self.there), *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False, **more)

    def admin_ctl(self, *arguments, **more):
        """Of a caller that reaches only the admin port."""
        return self.ctl(*arguments, there=["--admin", self.admin, *self.token], **more)

    def expect_fails(self, arguments, code, *words):
        done = self.ctl(*arguments)
        self.expect(done.returncode == code and all(word in done.stderr for word in words), f"{arguments}: {done}")

    def expect(self, holds, what):
        if not holds:
            self.complaints.append(what)

    def names_the_run(self):
        status = json.loads(self.ctl("status", "--json").stdout)
        done = self.ctl("export", "--out", "model")
        identity = f"; run {status['run_id']}, epoch {status['epoch']}, from {self.data}\n"
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
        """A run that begins with an exported folder exports the same bytes; with sgd there is no momentum."""
        folder = self.folder / "again"
        folder.mkdir()
        again = Run(self.programs, folder, self.folder / "folder", CONFIG + "outer: {optimizer: sgd, momentum: 0}\n")
        try:
            done = again.ctl("export", "--out", "model")
            self.expect((folder / "model").read_bytes() == (self.folder / "model").read_bytes(), f"another model: {done}")
            again.expect_fails(["export", "--out", "new", "--with-momentum"], USAGE, "--with-momentum", "keeps nothing")
            self.expect(not list(folder.glob("new*")), f"a refused export left {list(folder.glob('new*'))}")
            self.complaints += again.complaints
        finally:
            again.kill()

    def reads_the_admin_port(self):
        """Without the data port: the same bytes, also of a folder."""
        done = self.admin_ctl("export", "--out", "by-admin")
        self.expect((self.folder / "by-admin").read_bytes() == (self.folder / "model").read_bytes(), f"other bytes: {done}")
        self.expect(done.stdout.startswith("wrote by-admin: version 0, ") and done.stdout.endswith(f", from {self.admin}\n"),
                    f"export by the admin port: {done}")
        report = json.loads(self.admin_ctl("--json", "export", "--out", "by-admin").stdout)
        self.expect(report["admin"] == self.admin and "coordinator" not in report, f"export --json: {report}")
        done = self.admin_ctl("export", "--format", "hf", "--out", "folder-by-admin")
        weights = [(self.folder / folder / "model.safetensors").read_bytes() for folder in ("folder-by-admin", "folder")]
        self.expect(weights[0] == weights[1], f"other weights: {done}")

    def reads_versions_and_checkpoints(self):
        weights = read_weights(self.folder / "weights.safetensors")[1]
        for arguments in (["create", "first"], ["restore", "first", "--yes"], ["create", "second"], ["restore", "second", "--yes"]):
            done = self.ctl("checkpoint", *arguments)
            self.expect(done.returncode == 0, f"checkpoint {arguments}: {done}")
        for arguments, version, words in ((["--version", "1"], 1, "version 1, "), (["--version", "2"], 2, "version 2, "),
                                          (["--checkpoint", "first"], 0, "version 0 of checkpoint 'first', "),
                                          (["--checkpoint", "second"], 1, "version 1 of checkpoint 'second', ")):
            for ask in (self.ctl, self.admin_ctl):
                done = ask("export", "--out", "stored", *arguments)
                self.expect(f"wrote stored: {words}" in done.stdout, f"export {arguments}: {done}")
                header, data = read_weights(self.folder / "stored")
                self.expect(header["__metadata__"]["atoll_version"] == str(version) and data == weights, f"{arguments}: {header}")
        report = json.loads(self.ctl("--json", "export", "--out", "stored", "--checkpoint", "first").stdout)
        self.expect((report["checkpoint"], report["version"]) == ("first", 0), f"export --json: {report}")
        done = self.ctl("export", "--format", "hf", "--out", "stored-hf", "--checkpoint", "second", "--dtype", "bf16")
        self.expect(done.returncode == 0 and "of checkpoint 'second', " in done.stdout, f"a folder of a checkpoint: {done}")
        to = ["export", "--out", "new"]
        # tests/integration/external has a version that is gone.
        self.expect_fails([*to, "--version", "7"], REJECTED, "no version 7 yet", "the newest version is 2")
        self.expect_fails([*to, "--checkpoint", "fisrt"], REJECTED, "'fisrt' does not exist", "did you mean 'first'?",
                          "second, first")
        self.expect_fails(["checkpoint", "restore", "fisrt", "--yes"], REJECTED, "did you mean 'first'?")
        self.expect_fails([*to, "--checkpoint", "no/name"], USAGE, "checkpoint name")
        self.expect_fails([*to, "--checkpoint", ""], USAGE, "--checkpoint")
        self.expect_fails([*to, "--version", "-1"], USAGE, "--version")
        self.expect_fails([*to, "--version", "1", "--checkpoint", "first"], USAGE, "--version")
        self.expect(not list(self.folder.glob("new*")), "a refused export left a file")

    def writes_the_momentum(self):
        """A second file beside the first: zeros, because no round has moved this run."""
        done = self.ctl("export", "--out", "m.safetensors", "--with-momentum")
        self.expect("wrote m.momentum.safetensors: the outer optimizer's momentum\n" in done.stdout, f"export with momentum: {done}")
        model, data = read_weights(self.folder / "m.safetensors")
        header, momentum = read_weights(self.folder / "m.momentum.safetensors")
        expected = {("momentum." + name, tuple(one["shape"])) for name, one in model.items() if name != "__metadata__"}
        self.expect({(name, tuple(one["shape"])) for name, one in header.items() if name != "__metadata__"} == expected
                    and momentum == bytes(len(data)), f"the momentum: {header}")
        self.expect(header["__metadata__"]["atoll_version"] == "2", f"{header['__metadata__']}")
        report = json.loads(self.ctl("--json", "export", "--format", "hf", "--out", "mf", "--with-momentum", "--checkpoint",
                                     "first").stdout)
        self.expect(report["momentum"] == "mf.momentum.safetensors" and (self.folder / "mf.momentum.safetensors").is_file()
                    and "momentum" not in str(list((self.folder / "mf").iterdir())), f"a folder with momentum: {report}")
        self.expect_fails(["export", "--out", "/dev/stdout", "--with-momentum"], USAGE, "--with-momentum", "a file")
        (self.folder / "kept.momentum.safetensors").write_bytes(b"old")
        (self.folder / "kept.momentum.safetensors").chmod(0o400)
        self.expect_fails(["export", "--out", "kept.safetensors", "--with-momentum"], FILES, "--with-momentum kept.momentum")
        self.expect(not (self.folder / "kept.safetensors").exists(), "parameters appeared without their momentum")

    def generates(self):
        """Token for token the same from a folder, the admin port, a version and a checkpoint."""
        if not (self.programs / "atoll-model").exists():
            return

        def generate(*arguments):
            return subprocess.run([self.programs / "atoll-model", "generate", "--device", "cpu", "--threads", "1", "--prompt-tokens",
                                   "1 2 3", "--tokens", "8", "--temperature", "0", *arguments], cwd=self.folder,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        expected = generate("--model", "folder")
        self.expect(expected.returncode == 0 and len(expected.stdout.split()) >= 8, f"generate from a folder: {expected}")
        admin = ["--admin", self.admin, *self.token]
        for source in (["--coordinator", self.data, *self.token], admin, [*admin, "--version", "1"], [*admin, "--checkpoint", "first"],
                       [*admin, "--coordinator", self.data, "--checkpoint", "second"]):
            done = generate(*source)
            self.expect(done.returncode == 0 and done.stdout == expected.stdout, f"generate {source}: {done}")
        for source, code, words in (
                ([*admin, "--checkpoint", "fisrt"], REJECTED, "did you mean 'first'?"),
                ([*admin, "--version", "7"], REJECTED, "the newest version is 2"),
                (["--coordinator", self.data, "--version", "1"], USAGE, "also give --admin HOST:PORT"),
                (["--model", "folder", "--version", "1"], USAGE, "--version"),
                (["--admin", self.data, *self.token, "--version", "1"], REJECTED, "--admin"),
                (["--admin", "127.0.0.1:1", "--version", "1"], 3, "no coordinator answers on 127.0.0.1:1")):
            done = generate(*source)
            self.expect(done.returncode == code and words in done.stderr, f"generate {source}: {done}")

    def revokes_lost_tokens(self):
        for more in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = self.ctl("tokens", "create", "--role", "observer", "--name", "lost", *more, stdout=full)
            self.expect(done.returncode == STORAGE and "was revoked again" in done.stderr, f"tokens create on a full disk: {done}")
        made = [token for token in json.loads(self.ctl("tokens", "list", "--json").stdout)["tokens"] if token["name"] == "lost"]
        self.expect(len(made) == 2 and all(int(token["revoked_unix_nanos"]) > 0 for token in made), f"tokens are in force: {made}")


if __name__ == "__main__":
    sys.exit(run_parts("atoll-export-", Run, (Run.names_the_run, Run.appends, Run.refuses_outputs, Run.writes_folders,
                                              Run.refuses_folders, Run.imports_its_folder, Run.reads_the_admin_port,
                                              Run.reads_versions_and_checkpoints, Run.writes_the_momentum, Run.generates,
                                              Run.revokes_lost_tokens)))
