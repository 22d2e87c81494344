"""Folders of Hugging Face's transformers: what it writes seeds a run, and what a run exports it loads, with the same logits."""
import itertools
import json
import signal
import struct
import unittest

import numpy
import torch
import transformers

import atoll
from fixture import PATIENCE_S, ROOT, Coordinator, RunTest, config, wait_for
from hf_models import HEADS, LAYERS, VOCABULARY, WIDTH, Complaints, gpt2, llama

POSITIONS = 32
TOKENS = torch.arange(40).reshape(2, 20) * 5 % VOCABULARY


def llama_run(more_sections=None, **more):
    section = {"layers": LAYERS, "heads": HEADS, "kv_heads": 2, "width": WIDTH, "intermediate": 96, "context": POSITIONS,
               "vocabulary": VOCABULARY, **more}
    return config(model={"llama": section}, **{"data": {"tokenizer": "bytes"}, **(more_sections or {})})


def run_of(**more):
    gpt = {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "context": POSITIONS, "vocabulary": VOCABULARY, **more}
    return config(model={"gpt": gpt}, data={"tokenizer": "bytes"})


def header_of(path):
    with open(path, "rb") as file:
        return json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))


class FolderTest(RunTest):
    def seeded(self, model, text=None, **save):
        """A run that begins with the model, by way of a folder."""
        model.save_pretrained(self.folder / "saved", **save)
        return self.coordinator(text or run_of(), "--import", self.folder / "saved")

    def exported(self, hub, *arguments, name="exported"):
        report = json.loads(hub.ctl("export", "--format", "hf", "--out", str(self.folder / name), "--json", *arguments))
        self.assertEqual(sorted(report["files"]), sorted(path.name for path in (self.folder / name).iterdir()))
        self.assertFalse(list(self.folder.glob("*.partial")))
        return self.folder / name

    def loaded(self, folder, **more):
        with Complaints() as complaints:
            model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **more)
        self.assertEqual(complaints.said, [])
        self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
        return model.eval()

    def windows(self, name, count):
        """The first samples of a token file, each with the token after it."""
        tokens = numpy.fromfile(self.folder / "tokens" / name, "<u2", offset=1024).astype("i8")
        return torch.from_numpy(numpy.stack([tokens[at * POSITIONS:at * POSITIONS + POSITIONS + 1] for at in range(count)]))

    @staticmethod
    def loss(model, windows):
        return torch.nn.functional.cross_entropy(model(windows[:, :-1]).logits.flatten(0, 1), windows[:, 1:].flatten())

    def assert_same_logits(self, model, other):
        with torch.no_grad():
            self.assertTrue(torch.equal(model(TOKENS).logits, other(TOKENS).logits))

    def test_what_is_imported_is_exported_and_loads(self):
        model = gpt2()
        folder = self.exported(self.seeded(model))
        self.assert_same_logits(model, self.loaded(folder))
        written = json.loads((folder / "config.json").read_text())
        self.assertEqual((written["n_embd"], written["n_head"], written["tie_word_embeddings"]), (WIDTH, HEADS, True))

    def test_several_files(self):
        model = gpt2()
        hub = self.seeded(model, max_shard_size="100KB")
        self.assertTrue((self.folder / "saved/model.safetensors.index.json").exists())
        folder = self.exported(hub, "--shard-bytes", "150000")
        self.assertGreater(len(list(folder.glob("model-*-of-*.safetensors"))), 2)
        self.assert_same_logits(model, self.loaded(folder))

    def test_a_model_without_its_head_has_names_without_prefix(self):
        model = gpt2()
        folder = self.exported(self.seeded(model.transformer))
        self.assertIn("wte.weight", header_of(self.folder / "saved/model.safetensors"))
        self.assertIn("transformer.wte.weight", header_of(folder / "model.safetensors"))
        self.assert_same_logits(model, self.loaded(folder))

    def test_a_head_of_its_own(self):
        model = gpt2(tie_word_embeddings=False)
        self.assertFalse(torch.equal(model.lm_head.weight, model.transformer.wte.weight))
        folder = self.exported(self.seeded(model, run_of(tied_embeddings=False)))
        self.assert_same_logits(model, self.loaded(folder))

    def test_a_run_without_biases_exports_zeros(self):
        model = gpt2()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith(".bias"):
                    parameter.zero_()
        folder = self.exported(self.seeded(model, run_of(bias=False)))
        self.assertIn("transformer.h.0.attn.c_attn.bias", header_of(folder / "model.safetensors"))
        self.assert_same_logits(model, self.loaded(folder))

    def test_values_are_rounded_as_torch_rounds_them(self):
        model = gpt2()
        hub = self.seeded(model)
        for flag, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            other = self.loaded(self.exported(hub, "--dtype", flag, name=flag), dtype="auto")
            self.assertEqual(other.dtype, dtype)
            for name, parameter in model.named_parameters():
                self.assertTrue(torch.equal(other.get_parameter(name), parameter.to(dtype)), name)

    def check_import_of(self, dtype):
        model = gpt2().to(dtype)
        other = self.loaded(self.exported(self.seeded(model)))
        self.assertEqual(other.dtype, torch.float32)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(other.get_parameter(name), parameter.float()), name)

    def test_bfloat16_is_imported_exactly(self):
        self.check_import_of(torch.bfloat16)

    def test_float16_is_imported_exactly(self):
        self.check_import_of(torch.float16)

    def check_llama(self, model, text):
        folder = self.exported(self.seeded(model, text))
        other = self.loaded(folder)
        self.assertIs(type(other), type(model))
        self.assert_same_logits(model, other)

    def test_llama(self):
        scaling = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 16}
        model = llama(transformers.LlamaConfig, rope_parameters=scaling, tie_word_embeddings=False)
        self.check_llama(model, llama_run(tied_embeddings=False, rope_theta=500000,
                                          rope_scaling={"factor": 32, "original_context": 16}))

    def test_a_base_of_rotary_positions_in_the_older_object(self):
        """transformers 5 reads a base in `rope_scaling`, too."""
        model = llama(transformers.LlamaConfig, rope_parameters={"rope_type": "default", "rope_theta": 20.0})
        model.save_pretrained(self.folder / "saved")
        config_file = self.folder / "saved/config.json"
        fields = json.loads(config_file.read_text())
        fields["rope_scaling"] = fields.pop("rope_parameters")
        self.assertEqual(fields["rope_scaling"]["rope_theta"], 20.0)
        config_file.write_text(json.dumps(fields))
        self.assert_same_logits(model, self.loaded(self.folder / "saved"))
        hub = self.coordinator(llama_run(rope_theta=20), "--import", self.folder / "saved")
        self.assert_same_logits(model, self.loaded(self.exported(hub)))

    def test_contradictions_about_rotary_positions_leave_no_run(self):
        model = llama(transformers.LlamaConfig)
        model.save_pretrained(self.folder / "saved")
        config_file = self.folder / "saved/config.json"
        fields = json.loads(config_file.read_text())
        inner = {"rope_type": "default", "rope_theta": 500.0}
        for change, told in (
                ({"rope_theta": 10000.0, "rope_parameters": inner}, "rope_theta is 10000.0 and rope_parameters.rope_theta is 500.0"),
                ({"rope_parameters": inner, "rope_scaling": {"rope_type": "default", "rope_theta": 10000.0}},
                 "rope_scaling.rope_theta is 10000.0 and rope_parameters.rope_theta is 500.0")):
            with self.subTest(told):
                config_file.write_text(json.dumps({**fields, **change}))
                with self.assertRaises(AssertionError) as raised:
                    self.coordinator(llama_run(), "--import", self.folder / "saved")
                self.assertIn(told, str(raised.exception))
                self.assertFalse((self.folder / "coordinator").exists())

    def test_qwen2(self):
        self.check_llama(llama(transformers.Qwen2Config), llama_run(qkv_bias=True))

    def test_qwen3(self):
        self.check_llama(llama(transformers.Qwen3Config, head_dim=32), llama_run(qk_norm=True, head_dim=32))

    def test_training_goes_on_at_the_loss_of_the_checkpoint(self):
        self.need_native()
        self.tokenize(self.folder / "tokens", [ROOT / "README.md"])
        batches, batch = 4, 3
        for name, model, section in (
                ("gpt", gpt2(), {"layers": LAYERS, "heads": HEADS, "width": WIDTH}),
                ("llama", llama(transformers.Qwen3Config, head_dim=32),
                 {"layers": LAYERS, "heads": HEADS, "kv_heads": 2, "head_dim": 32, "width": WIDTH, "intermediate": 96, "qk_norm": True})):
            with self.subTest(name):
                model.save_pretrained(self.folder / name)
                folder = self.folder / f"run-{name}"
                folder.mkdir()
                hub = Coordinator(folder, config(
                    rounds=2, steps=1, batch=batch, learning_rate=1e-12, evaluation={"every": 1, "batches": batches},
                    model={name: {**section, "context": POSITIONS, "vocabulary": VOCABULARY}}, data={"tokenizer": "bytes"}),
                    "--import", self.folder / name).start()
                self.addCleanup(hub.stop, signal.SIGKILL)
                self.start_native(hub, "w0", self.folder / "tokens", folder / "w0", folder / "w0.log")
                wait_for(lambda: hub.status().get("evaluations"), "an evaluation")
                with torch.no_grad():
                    expected = self.loss(model, self.windows("val.bin", batches * batch)).item()
                for evaluation in hub.status()["evaluations"]:
                    self.assertAlmostEqual(evaluation["loss"], expected, delta=1e-4 * expected)

    def test_both_kinds_of_workers_train_a_checkpoint(self):
        """What atoll-worker and a loop with the model of transformers train together loads there, with the loss that the run reports."""
        self.need_native()
        self.tokenize(self.folder / "tokens", [ROOT / "README.md"])
        model = llama(transformers.LlamaConfig)
        batches, batch = 3, 4
        hub = self.seeded(model, llama_run(more_sections={
            "run": {"name": "both", "workers": 2, "rounds": 2}, "inner": {"steps": 3, "batch": batch, "learning_rate": 1e-3},
            "data": {"tokenizer": "bytes", "mode": "local"}, "evaluation": {"every": 1, "batches": batches}}))
        native = self.start_native(hub, "w0", self.folder / "tokens", self.folder / "w0", self.folder / "w0.log")
        windows = self.windows("train_000.bin", 64)
        mine = llama(transformers.LlamaConfig).train()
        optimizer = torch.optim.AdamW(mine.parameters(), lr=1e-3)
        held_out = self.windows("val.bin", batches * batch)

        def evaluate(model, _):  # either worker may be asked
            with torch.no_grad():
                return self.loss(model, held_out).item()

        with atoll.join(hub.data, mine, optimizer, evaluate=evaluate, **self.options("w1")) as run:
            self.assertEqual(run.context, POSITIONS)
            for rows in run.steps(windows[at:at + batch] for at in itertools.cycle(range(0, 60, batch))):
                self.loss(mine, rows).backward()
                optimizer.step()
                optimizer.zero_grad()
        self.assertEqual(native.wait(PATIENCE_S), 0, self.log("w0.log"))
        self.assertEqual([sorted(names) for names in hub.contributors().values()], [["w0", "w1"]] * 2)
        trained = self.loaded(self.exported(hub))
        losses = {int(point["version"]): point["value"] for point in hub.metrics() if point["name"] == "validation/loss"}
        with torch.no_grad():
            loss = self.loss(trained, held_out).item()
        self.assertAlmostEqual(losses[2], loss, delta=1e-4 * loss)
        self.assertLess(losses[2], losses[0])

    def test_a_configuration_that_contradicts_leaves_no_run(self):
        gpt2(n_head=8, layer_norm_epsilon=1e-6).save_pretrained(self.folder / "saved")
        with self.assertRaises(AssertionError) as raised:
            self.coordinator(run_of(), "--import", self.folder / "saved")
        told = str(raised.exception)
        self.assertIn("ended with 2", told)
        self.assertIn("n_head is 8; the run has 4 (model.gpt.heads). Also: layer_norm_epsilon is 1e-06", told)
        self.assertFalse((self.folder / "coordinator").exists())


if __name__ == "__main__":
    unittest.main()
