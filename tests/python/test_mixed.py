"""A run that atoll-worker and a Python loop train together ends as well as one of atoll-worker alone."""
import signal
import unittest

from fixture import PATIENCE_S, ROOT, Coordinator, RunTest, config

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 1, 2, 32, 32, 8
ROUNDS, STEPS = 10, 20
TOKENIZER = "bytes"
# Of the loss, where workers wait for each other: the runs differ in the order of w1's samples. Measured: 1.8 %.
TOLERANCE = 0.05
# Where they do not, their speeds decide who takes how many of the run's steps, so the loss of two equal runs differs by 20 %. It is below that of
# workers who wait: measured 5 to 16 % for Python, and from 16 % below to 4 % above it for atoll-worker alone, on a busy machine.
OVERLAPPED_TOLERANCE = 0.1


class MixedTest(RunTest):
    def setUp(self):
        super().setUp()
        self.need_native()
        # Each worker has texts of its own: with the same ones, two workers of a kind would read the same samples in the same order.
        texts = sorted((ROOT / "docs/reference").glob("*.md"))
        for worker in range(2):
            self.tokenize(self.folder / f"tokens-w{worker}", texts[worker::2])

    def start_atoll_worker(self, hub, folder, name):
        return self.start_native(hub, name, self.folder / f"tokens-{name}", folder / f"state-{name}", folder / f"{name}.log")

    def start_python(self, hub, folder, name):
        return self.spawn("small_gpt.py", hub.data, name, folder / f"state-{name}", self.folder / f"tokens-{name}", LAYERS, HEADS, WIDTH,
                          CONTEXT, BATCH, log=f"{folder.name}/{name}.log")

    def final_loss(self, label, starters, sync):
        """The validation loss of the last version, of a run of these workers."""
        folder = self.folder / label
        folder.mkdir()
        model = {"gpt": {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "context": CONTEXT, "vocabulary": 256}}
        text = config(rounds=ROUNDS, steps=STEPS, workers=len(starters), batch=BATCH, learning_rate=3e-3, model=model,
                      data={"mode": "local", "tokenizer": TOKENIZER}, sync=sync, codec={"push": "e3m0"}, outer={"learning_rate": 1.0, "momentum": 0.6})
        hub = Coordinator(folder, text).start()
        self.addCleanup(lambda: hub.stop(signal.SIGKILL))
        workers = {f"w{i}": start(hub, folder, f"w{i}") for i, start in enumerate(starters)}
        for name, process in workers.items():
            self.assertEqual(process.wait(2 * PATIENCE_S), 0, self.log(f"{label}/{name}.log"))
        losses = {int(point["version"]): point["value"] for point in hub.metrics() if point["name"] == "validation/loss"}
        contributors = hub.contributors()
        hub.stop(signal.SIGKILL)
        return losses[max(losses)], losses[0], contributors

    def check(self, sync):
        """How much higher the loss of a mixed run is than that of atoll-worker alone, whose workers wait for each other."""
        native, first, _ = self.final_loss("native", [self.start_atoll_worker, self.start_atoll_worker], {})
        mixed, _, contributors = self.final_loss("mixed", [self.start_atoll_worker, self.start_python], sync)
        self.assertLess(native, first * 0.8)
        self.assertTrue(any("w1" in names for names in contributors.values()), contributors)
        worse = (mixed - native) / native
        print(f"validation loss: {first:.4f} at the start, {native:.4f} of atoll-worker alone, {mixed:.4f} mixed ({worse:+.2%})", flush=True)
        return worse

    def test_blocking(self):
        self.assertLess(abs(self.check({})), TOLERANCE)

    def test_overlapped(self):
        self.assertLess(self.check({"mode": "overlapped", "fragments": 2, "delay_steps": 2}), OVERLAPPED_TOLERANCE)


if __name__ == "__main__":
    unittest.main()
