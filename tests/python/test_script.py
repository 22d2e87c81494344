"""atoll-worker trains a TorchScript model as PyTorch does: modules of torch.nn, saved by torch.jit.script.

torch.jit.trace keeps no lists of parameters, so the traced module is the measure of the scripted one.
"""
import json
import signal
import struct
import unittest

import torch
from torch import nn

from fixture import PATIENCE_S, ROOT, Coordinator, RunTest, config

VOCABULARY, WIDTH, CONTEXT, BATCH = 256, 16, 32, 4


class Recurrent(nn.Module):
    def __init__(self, mixer):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.mixer = mixer
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, targets):
        logits = self.head(self.mixer(self.embedding(tokens))[0])
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class PartlyUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.unused = nn.Parameter(torch.ones(WIDTH, WIDTH))

    def forward(self, tokens, targets):
        logits = self.embedding(tokens) @ self.embedding.weight.t()
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parameters_of(path):
    """{name: values} of a safetensors file; the system's Python has no reader of it."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]),
                                   dtype=torch.float32).reshape(entry["shape"]) for name, entry in header.items()}


class ScriptTest(RunTest):
    def setUp(self):
        super().setUp()
        self.need_native()
        self.tokens = self.folder / "tokens"
        self.tokenize(self.tokens, [ROOT / "README.md"])

    def trained(self, name, script):
        """The parameters after two rounds."""
        folder = self.folder / name
        folder.mkdir()
        script.save(str(folder / "model.pt"))
        hub = Coordinator(folder, config(
            rounds=2, steps=5, batch=BATCH, learning_rate=3e-3, data={"tokenizer": "bytes"},
            model={"torchscript": {"file": folder / "model.pt", "context": CONTEXT, "vocabulary": VOCABULARY}})).start()
        self.addCleanup(hub.stop, signal.SIGKILL)
        worker = self.start_native(hub, "w0", self.tokens, folder / "state", folder / "w0.log")
        self.assertEqual(worker.wait(PATIENCE_S), 0, (folder / "w0.log").read_text())
        hub.ctl("export", "--out", str(folder / "trained.safetensors"))
        hub.stop(signal.SIGKILL)
        return parameters_of(folder / "trained.safetensors")

    def test_recurrent_modules_are_trained(self):
        example = torch.zeros((2, CONTEXT), dtype=torch.long)
        for kind in (nn.GRU, nn.LSTM, nn.RNN):
            with self.subTest(kind.__name__):
                torch.manual_seed(1)
                model = Recurrent(kind(WIDTH, WIDTH, num_layers=2, batch_first=True))
                scripted = self.trained(f"scripted-{kind.__name__}", torch.jit.script(model))
                traced = self.trained(f"traced-{kind.__name__}", torch.jit.trace(model, (example, example)))
                self.assertEqual(sorted(scripted), sorted(name for name, _ in model.named_parameters()))
                for name, start in model.named_parameters():
                    self.assertGreater((scripted[name] - start).abs().max().item(), 1e-3, name)
                    self.assertLess((scripted[name] - traced[name]).abs().max().item(), 1e-5, name)

    def test_a_parameter_without_a_gradient_stays(self):
        torch.manual_seed(1)
        model = PartlyUsed()
        trained = self.trained("partly", torch.jit.script(model))
        self.assertTrue(torch.equal(trained["unused"], model.unused))
        self.assertFalse(torch.equal(trained["embedding.weight"], model.embedding.weight))


if __name__ == "__main__":
    unittest.main()
