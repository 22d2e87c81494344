#!/usr/bin/env python3
"""The outputs of atollctl that outlive it, with a real coordinator: files, descriptors of the shell, tokens.

An export says which run it is of; it is appended to what `>>FILE` opened; a read-only file and an empty name are refused; a
token that nobody could read is revoked.

Usage: export_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
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
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(offset))


class Run(ServedRun):
    def __init__(self, programs, folder):
        write_weights(folder / "weights.safetensors")
        super().__init__(programs, folder, CONFIG, "--import", folder / "weights.safetensors")

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

    def revokes_lost_tokens(self):
        for more in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = self.ctl("tokens", "create", "--role", "observer", "--name", "lost", *more, stdout=full)
            self.expect(done.returncode == STORAGE and "was revoked again" in done.stderr, f"tokens create on a full disk: {done}")
        made = [token for token in json.loads(self.ctl("tokens", "list", "--json").stdout)["tokens"] if token["name"] == "lost"]
        self.expect(len(made) == 2 and all(int(token["revoked_unix_nanos"]) > 0 for token in made), f"tokens are in force: {made}")


if __name__ == "__main__":
    sys.exit(run_parts("atoll-export-", Run, (Run.names_the_run, Run.appends, Run.refuses_outputs, Run.revokes_lost_tokens)))
