"""Workers on a GPU: atoll-worker, and Python loops in mixed runs. scripts/gpu_check.sh runs it; it is skipped without a GPU."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import torch

from fixture import PATIENCE_S, ROOT, Coordinator, RunTest, config, wait_for

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 2, 4, 128, 64, 16
GPT = {"gpt": {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "context": CONTEXT, "vocabulary": 256}}
LLAMA = {"llama": {"layers": 2, "heads": 4, "kv_heads": 2, "width": 128, "intermediate": 352, "context": CONTEXT, "vocabulary": 256}}
WAYS = ["plain", "autocast", "scaler", "compile", "ddp", "fsdp"]


class WithLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 64)
        self.mixer = torch.nn.GRU(64, 64, batch_first=True)
        self.head = torch.nn.Linear(64, 256)

    def forward(self, tokens, targets):
        logits = self.head(self.mixer(self.embedding(tokens))[0])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def found_in(value, key):
    """Every value of `key` in nested JSON."""
    if isinstance(value, dict):
        return ([value[key]] if key in value else []) + [x for item in value.values() for x in found_in(item, key)]
    return [x for item in value for x in found_in(item, key)] if isinstance(value, list) else []


@unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
class CudaTest(RunTest):
    def setUp(self):
        super().setUp()
        self.need_native()
        self.tokens = self.folder / "tokens"
        self.tokenize(self.tokens, sorted((ROOT / "docs/reference").glob("*.md")))

    def hub_of(self, name, workers, model, **more):
        folder = self.folder / name
        folder.mkdir()
        settings = {"rounds": 6, "steps": 60, "batch": BATCH, "learning_rate": 3e-3, "data": {"mode": "local", "tokenizer": "bytes"},
                    "outer": {"learning_rate": 1.0, "momentum": 0.6}, **more}
        hub = Coordinator(folder, config(workers=workers, model=model, **settings)).start()
        self.addCleanup(lambda: hub.stop(signal.SIGKILL))
        return hub

    def native(self, hub, name):
        return self.start_native(hub, name, self.tokens, hub.folder / f"state-{name}", hub.folder / f"{name}.log", device="cuda")

    def ends(self, hub, name, process):
        self.assertEqual(process.wait(PATIENCE_S), 0, (hub.folder / f"{name}.log").read_text()[-3000:])

    def losses(self, hub):
        points = {int(point["version"]): point["value"] for point in hub.metrics() if point["name"] == "validation/loss"}
        return points[min(points)], points[max(points)]

    def generated(self, model, folder, device):
        done = subprocess.run([pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-model", "generate", "--model", model, "--config", folder / "run.yaml",
                               "--device", device, "--temperature", "0", "--tokens", "100", "--prompt", "The coordinator"],
                              capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class NativeTest(CudaTest):
    def check_run(self, name, model, **more):
        """One worker learns on the GPU, and the result writes the same text on both devices."""
        hub = self.hub_of(name, 1, model, **more)
        self.ends(hub, "w0", self.native(hub, "w0"))
        self.assertIn("pushes are encoded on the device", (hub.folder / "w0.log").read_text())
        first, last = self.losses(hub)
        print(f"{name}: validation loss from {first:.3f} to {last:.3f}", flush=True)
        self.assertLess(last, 0.8 * first)
        return hub

    def check_text(self, hub):
        model = hub.folder / "model.safetensors"
        hub.ctl("export", "--out", model)
        there, here = self.generated(model, hub.folder, "cuda"), self.generated(model, hub.folder, "cpu")
        self.assertGreater(len(here), 60)
        self.assertEqual(there, here)

    def test_gpt(self):
        self.check_text(self.check_run("gpt", GPT))

    def test_gpt_in_bf16(self):
        self.check_run("bf16", GPT, inner={"precision": "bf16", "steps": 60, "batch": BATCH, "learning_rate": 3e-3,
                                           "recompute_activations": True})

    def test_llama(self):
        self.check_text(self.check_run("llama", LLAMA))

    def test_torchscript(self):
        path = self.folder / "model.pt"
        torch.jit.script(WithLoss()).save(str(path))
        self.check_run("script", {"torchscript": {"file": path, "context": CONTEXT, "vocabulary": 256}})

    def test_an_overlapped_run(self):
        hub = self.hub_of("overlapped", 2, GPT, sync={"mode": "overlapped", "fragments": 2, "delay_steps": 2}, codec={"push": "e3m0"})
        workers = {name: self.native(hub, name) for name in ("w0", "w1")}
        for name, process in workers.items():
            self.ends(hub, name, process)
        first, last = self.losses(hub)
        self.assertLess(last, 0.8 * first)

    def test_two_workers_share_a_gpu_and_one_is_killed(self):
        hub = self.hub_of("killed", 2, GPT, rounds=8, steps=150, codec={"push": "int8"})
        workers = {name: self.native(hub, name) for name in ("w0", "w1")}
        wait_for(lambda: hub.head() >= 2, "two rounds")
        status = json.loads(hub.ctl("workers", "list", "--json"))
        print("workers:", found_in(status, "device"), found_in(status, "device_name"), found_in(status, "device_memory_bytes"), flush=True)
        self.assertEqual(found_in(status, "device"), ["cuda:0", "cuda:0"])
        self.assertEqual(found_in(status, "device_name"), [torch.cuda.get_device_name(0)] * 2)
        self.assertTrue(all(int(size) > 1 << 30 for size in found_in(status, "device_memory_bytes")))
        workers["w1"].send_signal(signal.SIGKILL)
        workers["w1"].wait(PATIENCE_S)
        killed_at = hub.head()
        workers["w1"] = self.native(hub, "w1")
        for name, process in workers.items():
            self.ends(hub, name, process)
        contributors = hub.contributors()
        self.assertGreaterEqual(max(contributors), 8, "the run ends after its tokens")
        self.assertTrue(any("w1" in names for version, names in contributors.items() if version > killed_at + 1), contributors)
        self.assertIn("the state it kept", (hub.folder / "w1.log").read_text())
        first, last = self.losses(hub)
        print(f"two workers, one killed at version {killed_at}: validation loss from {first:.3f} to {last:.3f}", flush=True)
        self.assertLess(last, 0.8 * first)
        hub.ctl("verify")


class PythonTest(CudaTest):
    def test_every_way_with_a_worker_in_cpp(self):
        """All at once: the first steps of a process are the longest."""
        hubs = {way: self.hub_of(way, 2, GPT, rounds=4, steps=20) for way in WAYS}
        native = {way: self.native(hub, "w0") for way, hub in hubs.items()}
        loops = {way: self.spawn("cuda_worker.py", way, hub.data, "w1", hub.folder / "state-w1", self.tokens, LAYERS, HEADS, WIDTH, CONTEXT,
                                 BATCH, log=f"{way}/w1.log", OMP_NUM_THREADS="2") for way, hub in hubs.items()}
        for way in WAYS:
            with self.subTest(way=way):
                hub = hubs[way]
                self.ends(hub, "w1", loops[way])
                self.ends(hub, "w0", native[way])
                result = json.loads((hub.folder / "w1.log").read_text().strip().splitlines()[-1])
                print(json.dumps(result), flush=True)
                self.assertEqual(result["end"], "FINISHED")
                self.assertEqual([result["version"], result["published"]], [4, 4])
                self.assertEqual(result["apart"], 0, "the model is the published one, to the bit")
                self.assertTrue(result["finite"])
                self.assertEqual(result["tensors"][0], result["tensors"][1])
                self.assertLess(result["last"], result["first"])
                self.assertEqual({version: sorted(names) for version, names in hub.contributors().items()},
                                 {version: ["w0", "w1"] for version in range(1, 5)})


if __name__ == "__main__":
    unittest.main()
