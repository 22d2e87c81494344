#!/usr/bin/env python3
"""Damaged and contradicting model files, with the real programs: what each of them says, and that nothing is left behind.

Every case changes one thing in a folder of a small Llama. `atoll-coordinator --import` must reject it with the message of the case, before
it makes a data directory; `atoll-model generate`, where it is built, says what it needs of the same folder. A start without --import then
begins a run that has no parameters yet.

Usage: bad_models_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import array
import dataclasses
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import typing

from served_run import ServedRun

CONFIG = """
run: {name: tiny, workers: 1, rounds: 3}
model: {llama: {layers: 1, heads: 2, kv_heads: 1, width: 8, intermediate: 16, context: 8, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 0.001, batch: 2}
"""
SHAPES = {
    "model.embed_tokens.weight": [256, 8],
    "model.layers.0.self_attn.q_proj.weight": [8, 8],
    "model.layers.0.self_attn.k_proj.weight": [4, 8],
    "model.layers.0.self_attn.v_proj.weight": [4, 8],
    "model.layers.0.self_attn.o_proj.weight": [8, 8],
    "model.layers.0.mlp.gate_proj.weight": [16, 8],
    "model.layers.0.mlp.up_proj.weight": [16, 8],
    "model.layers.0.mlp.down_proj.weight": [8, 16],
    "model.layers.0.input_layernorm.weight": [8],
    "model.layers.0.post_attention_layernorm.weight": [8],
    "model.norm.weight": [8],
}
FIELDS = {"model_type": "llama", "vocab_size": 256, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
          "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
          "tie_word_embeddings": True}
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
USAGE, FILES = 2, 6


class Model:
    """A folder of transformers. A case changes what it will hold, or, by `after`, what it holds."""

    def __init__(self):
        self.fields, self.shapes, self.values = dict(FIELDS), dict(SHAPES), {}
        self.dtypes, self.sharded, self.after = {}, False, []

    def contents(self, names):
        """Of a safetensors file."""
        header, data = {}, b""
        for name in names:
            count = 1
            for length in self.shapes[name]:
                count *= length
            values = self.values.get(name, array.array("f", (((i * 7919) % 10007 - 5000) / 4093 for i in range(count))))
            header[name] = {"dtype": self.dtypes.get(name, "F32"), "shape": self.shapes[name],
                            "data_offsets": [len(data), len(data) + len(values.tobytes())]}
            data += values.tobytes()
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def write(self, folder):
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(self.fields))
        names = list(self.shapes)
        if self.sharded:
            parts = dict(zip(SHARDS, (names[:4], names[4:])))
            for file, part in parts.items():
                (folder / file).write_bytes(self.contents(part))
            (folder / INDEX).write_text(json.dumps({"weight_map": {name: file for file, part in parts.items() for name in part}}))
        else:
            (folder / WEIGHTS).write_bytes(self.contents(names))
        for change in self.after:
            change(folder)


# ---- changes

def cut(file, keep):
    """Keeps the first bytes of a file, or all but the last ones."""
    def change(folder):
        (folder / file).write_bytes((folder / file).read_bytes()[:keep])
    return lambda model: model.after.append(change)


def replace(file, data):
    return lambda model: model.after.append(lambda folder: (folder / file).write_bytes(data))


def remove(file):
    return lambda model: model.after.append(lambda folder: (folder / file).unlink())


def field(**values):
    return lambda model: model.fields.update(values)


def dtype(name, value):
    return lambda model: model.dtypes.update({name: value})


def shape(name, value):
    return lambda model: model.shapes.update({name: value})


def without(name):
    return lambda model: model.shapes.pop(name)


def value(name, values):
    return lambda model: model.values.update({name: array.array("f", values)})


def sharded(then):
    def change(model):
        model.sharded = True
        then(model)
    return change


def outside(folder):
    """The index names a file beside its folder, which is there."""
    shutil.copy(folder / SHARDS[1], folder.parent / "outside.safetensors")
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["model.norm.weight"] = "../outside.safetensors"
    (folder / INDEX).write_text(json.dumps(index))


@dataclasses.dataclass(frozen=True)
class Case:
    what: str
    change: typing.Callable
    imports: str  # what the coordinator says
    code: int = USAGE
    generates: str | None = None  # what atoll-model says; None: the same; empty: it writes tokens


NORM, UP = "model.norm.weight", "model.layers.0.mlp.up_proj.weight"
CASES = (
    Case("a file that lacks its end", cut(WEIGHTS, -4),
         f"{WEIGHTS} is not a safetensors file: tensor '{NORM}' reaches beyond the end of the file; if it was copied or downloaded, do that again"),
    Case("a file that ends in its header", cut(WEIGHTS, 100),
         f"{WEIGHTS} is not a safetensors file: its header claims "),
    Case("an empty file", cut(WEIGHTS, 0), f"{WEIGHTS} is not a safetensors file: it is shorter than 8 bytes"),
    Case("a header without an end", replace(WEIGHTS, struct.pack("<Q", 2**63) + b"{}"),
         "its header claims 9223372036854775808 bytes; at most 100000000 are allowed"),
    Case("another dtype", dtype(NORM, "I32"), f"{WEIGHTS}: tensor '{NORM}' is of type I32; F32, F16 and BF16 can be imported"),
    Case("a dtype that the values contradict", dtype(NORM, "BF16"), f"tensor '{NORM}' has a range that does not fit its shape and dtype"),
    Case("a dtype that nobody knows", dtype(NORM, "Q4_0"), f"tensor '{NORM}' has the unknown dtype 'Q4_0'"),
    Case("a missing tensor", without(UP),
         f"model: tensor '{UP}' is missing; the model of the configuration has it, in shape [16, 8]"),
    Case("a misspelt tensor", lambda model: (without(UP)(model), shape(UP.replace("proj", "porj"), [16, 8])(model)),
         f"tensor '{UP}' is missing; the model of the configuration has it, in shape [16, 8]; did you mean "
         f"'{UP.replace('proj', 'porj')}'?"),
    Case("one tensor too many", shape("model.layers.1.mlp.up_proj.weight", [16, 8]),
         f"{WEIGHTS}: tensor 'model.layers.1.mlp.up_proj.weight' is not in the model of the configuration; did you mean '{UP}'?",
         generates=""),
    Case("another shape", shape(UP, [8, 16]),
         f"{WEIGHTS}: tensor '{UP}' has shape [8, 16]; the model of the configuration has [16, 8], which is its transpose"),
    Case("a value that is not finite", value(NORM, [1, 1, 1, float("nan"), 1, 1, 1, 1]),
         f"{WEIGHTS}: tensor '{NORM}' has a value that is not finite, at 3"),
    Case("a head that is not the embedding", lambda model: (shape("lm_head.weight", [256, 8])(model), value("lm_head.weight", [0] * 2048)(model)),
         "tensor 'lm_head.weight' is 0 at 0, and 'model.embed_tokens.weight' is -1.2216 there"),
    Case("another vocabulary", field(vocab_size=300), "config.json: vocab_size is 300; the run has 256 (model.llama.vocabulary)",
         generates="tensor 'model.embed_tokens.weight' has shape [256, 8]; the model of the configuration has [300, 8]"),
    Case("an unknown architecture", field(model_type="mixtral"),
         "config.json: model_type is \"mixtral\"; the run's model is a 'llama'",
         generates="config.json: model_type is 'mixtral'; gpt2, llama, qwen2 and qwen3 are known"),
    Case("another architecture", field(model_type="qwen3", head_dim=4),
         "config.json: model_type is \"qwen3\"; the run's model is a 'llama'",
         generates="tensor 'model.layers.0.self_attn.q_norm.weight' is missing"),
    Case("an unknown rotary scaling", field(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
         "config.json: rope_scaling.rope_type is \"yarn\"; the run has null (model.llama.rope_scaling)"),
    Case("an unknown rotary scaling in the newer form", field(rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0}),
         "config.json: rope_parameters.rope_type is \"longrope\"; the run has null (model.llama.rope_scaling)"),
    Case("a rotary scaling that the run has not",
         field(rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 4}),
         "config.json: rope_scaling.rope_type is \"llama3\"; the run has null (model.llama.rope_scaling)", generates=""),
    Case("two different bases of rotary positions",
         field(rope_theta=10000.0, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
         "config.json: rope_theta is 10000.0 and rope_parameters.rope_theta is 500.0, but they are names of one field; remove one"),
    Case("a base of rotary positions in the older object", field(rope_scaling={"rope_type": "default", "rope_theta": 20.0}),
         "config.json: rope_scaling.rope_theta is 20.0; the run has 10000.0 (model.llama.rope_theta)", generates=""),
    Case("two different objects of rotary positions",
         field(rope_scaling={"rope_type": "default", "rope_theta": 10000.0}, rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0}),
         "config.json: rope_scaling.rope_type is \"default\" and rope_parameters.rope_type is \"yarn\", "
         "but readers use one of the two objects; remove one"),
    Case("several contradictions", field(hidden_act="gelu", rope_theta=5e5),
         "config.json: rope_theta is 500000.0; the run has 10000.0 (model.llama.rope_theta). Also: hidden_act is \"gelu\"",
         generates="config.json: hidden_act is \"gelu\""),
    Case("a missing config.json", remove("config.json"),
         "config.json is missing: without it, nothing says how many heads the model has", FILES),
    Case("a config.json that is cut off", cut("config.json", -5), "config.json: is not JSON"),
    Case("a missing shard", sharded(remove(SHARDS[1])),
         f"{SHARDS[1]}: No such file or directory; ", FILES),
    Case("a shard that is cut off", sharded(cut(SHARDS[1], -4)), f"{SHARDS[1]} is not a safetensors file: tensor '{NORM}' reaches beyond the end"),
    Case("shards in each other's place", sharded(lambda model: model.after.append(
        lambda folder: shutil.copy(folder / SHARDS[0], folder / SHARDS[1]))),
         f"{SHARDS[1]}: tensor 'model.embed_tokens.weight' is here, and the index does not say so"),
    Case("an index that leaves its folder", sharded(lambda model: model.after.append(outside)),
         f"{INDEX}: tensor '{NORM}' is in \"../outside.safetensors\", which is not the name of a safetensors file in the folder of the index"),
    Case("a folder without weights", remove(WEIGHTS), f"has neither {WEIGHTS} nor {INDEX}", FILES),
)


class Table:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.complaints = programs, folder, []
        (folder / "run.yaml").write_text(CONFIG)

    def expect(self, holds, what):
        if not holds:
            self.complaints.append(what)

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)

    def imported(self, model):
        return self.run(self.programs / "atoll-coordinator", "--config", "run.yaml", "--data-dir", "data", "--listen", "127.0.0.1:0",
                        "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "", "--import", model)

    def generated(self, model):
        """None where atoll-model is not built."""
        program = self.programs / "atoll-model"
        if not program.exists():
            return None
        return self.run(program, "generate", "--model", model, "--prompt-tokens", "1 2", "--tokens", "3", "--temperature", "0",
                        "--threads", "1", "--device", "cpu")

    def check(self, case):
        model = Model()
        case.change(model)
        shutil.rmtree(self.folder / "model", ignore_errors=True)
        model.write(self.folder / "model")
        done = self.imported("model")
        self.expect(done.returncode == case.code and case.imports in done.stderr, f"import of {case.what}: {done}")
        self.expect(not (self.folder / "data").exists(), f"import of {case.what} left a data directory")
        done = self.generated("model")
        if done is None:
            return
        words = case.imports if case.generates is None else case.generates
        if words:
            self.expect(done.returncode == FILES and words in done.stderr, f"generate with {case.what}: {done}")
        else:
            self.expect(done.returncode == 0 and len(done.stdout.split()) == 3, f"generate with {case.what}: {done}")

    def check_unchanged(self):
        """The folder that the cases change is accepted as it is, in one file and in two."""
        for part in (False, True):
            model = Model()
            model.sharded = part
            folder = self.folder / f"whole-{part}"
            folder.mkdir()
            model.write(folder / "model")
            served = ServedRun(self.programs, folder, CONFIG, "--import", folder / "model")
            served.end()
            self.complaints += served.complaints
            done = self.generated(folder / "model")
            self.expect(done is None or done.returncode == 0, f"generate with {folder}: {done}")

    def check_next_start(self):
        """After every rejected import, a start without one has no parameters."""
        served = ServedRun(self.programs, self.folder, CONFIG)
        try:
            done = self.run(self.programs / "atollctl", *served.there, "export", "--out", "exported")
            self.expect(done.returncode != 0 and "the run has no parameters yet" in done.stderr, f"a start after rejected imports: {done}")
            self.expect(not (self.folder / "exported").exists(), "an export without parameters left a file")
            served.end()
            self.complaints += served.complaints
        finally:
            served.kill()


def main():
    with tempfile.TemporaryDirectory(prefix="atoll-bad-models-") as folder:
        table = Table(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        table.check_unchanged()
        for case in CASES:
            table.check(case)
        table.check_next_start()
    for complaint in table.complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(CASES)} cases")
    return 1 if table.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
