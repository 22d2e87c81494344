"""atoll-worker and a worker of the client library push the same bytes for the same base and the same parameters.

Both train in one run of the GPT-2. With the codec fp32, the payload of atoll-worker is its pseudo-gradient itself: the Python worker waits for
it, and takes parameters that are as far from the base, to the bit. With the other codecs atoll-worker takes the same steps again: its text and
its seed are the same, and so are all bases, because an outer step is too small to change a parameter. (One that is 0 becomes less than 1e-38,
which is lost in the first inner step.) So its pseudo-gradients are those of the first run.
"""
import signal
import unittest
import warnings

import numpy

import atoll
from fixture import PATIENCE_S, ROOT, Coordinator, RunTest, config, push_of, wait_for
from small_gpt import VOCABULARY, Gpt

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 1, 2, 32, 32, 4
MODEL = {"gpt": {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "context": CONTEXT, "vocabulary": VOCABULARY}}
ROUNDS, STEPS = 3, 4
ETA = 1.2e-38  # the least outer learning rate that a run may have
SLOT = 256  # every tensor begins at a multiple of it: core/fragment_plan.h


def parameters_at(base, delta):
    """float32 values for which base - values is `delta`, to the bit."""
    values = base - delta
    above = below = values
    for _ in range(4):
        above, below = numpy.nextafter(above, numpy.float32(numpy.inf)), numpy.nextafter(below, numpy.float32(-numpy.inf))
        for near in (above, below):
            values = numpy.where((base - values != delta) & (base - near == delta), near, values)
    assert (base - values == delta).all()
    return values


def apart(flat, arrays):
    """{name: its part of a fragment's values}"""
    found, start = {}, 0
    for name, array in arrays.items():
        found[name] = flat[start:start + array.size].reshape(array.shape)
        start += -(-array.size // SLOT) * SLOT
    assert start == len(flat)
    return found


class NativeTest(RunTest):
    def setUp(self):
        super().setUp()
        self.need_native()
        self.tokens = self.folder / "tokens"
        self.tokenize(self.tokens, sorted((ROOT / "docs/reference").glob("*.md")))

    def train(self, codec, deltas=None):
        """{base: push} that both workers have in common. `deltas`: pseudo-gradients of atoll-worker by base; None: those of this run."""
        folder = self.folder / codec
        folder.mkdir()
        hub = Coordinator(folder, config(
            rounds=ROUNDS, steps=STEPS, workers=2, batch=BATCH, learning_rate=3e-3, model=MODEL, data={"mode": "local", "tokenizer": "bytes"},
            codec={"push": codec, "pull_delta": "none"}, evaluation={"every": 0},
            outer={"optimizer": "sgd", "momentum": 0, "learning_rate": ETA})).start()
        self.addCleanup(hub.stop, signal.SIGKILL)
        native = self.start_native(hub, "w0", self.tokens, folder / "state-w0", folder / "w0.log")
        start = {name: values.numpy() for name, values in atoll.pull(hub.data).items()}
        model = Gpt(LAYERS, HEADS, WIDTH, CONTEXT)
        arrays = {name: model.get_parameter(name).detach().numpy() for name in start}  # the parameters' memory
        local, found = {}, {}
        with atoll.join(hub.data, model, **self.options("w1", state_dir=folder / "state-w1")) as run:
            while run.running:
                base = run.version
                if base not in found:
                    bases = {name: array.copy() for name, array in arrays.items()}
                    for name, array in bases.items():
                        self.assertLess(numpy.abs(array - start[name]).max(), 1e-38, (base, name))
                    found[base] = self.push_on(base, folder / "state-w0")
                    delta = numpy.frombuffer(found[base][2], "<f4") if deltas is None else deltas[base]
                    parts = apart(delta, bases)
                    local = {name: parameters_at(array, parts[name]) for name, array in bases.items()}
                for name, array in arrays.items():
                    array[...] = local[name]
                run.step(loss=1.0, tokens=CONTEXT * BATCH, samples=BATCH)
                if not run.running or run.version != base:
                    self.assertEqual(push_of(folder / "state-w1"), found[base], (codec, base))
        self.assertEqual(native.wait(PATIENCE_S), 0, self.log(f"{codec}/w0.log"))
        self.assertEqual(hub.contributors(), {version: ["w0", "w1"] for version in range(1, ROUNDS + 1)})
        self.assertEqual(sorted(found), list(range(ROUNDS)))
        hub.stop(signal.SIGKILL)
        return found

    def push_on(self, base, state_dir):
        """atoll-worker's push on this base, once it is on its disk."""
        found = []

        def there():
            try:
                found.append(push_of(state_dir))
            except FileNotFoundError:
                return False
            return found[-1][1] == base

        wait_for(there, f"atoll-worker's push on version {base}")
        return found[-1]

    def test_both_push_the_same_bytes(self):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "this step used")  # its size is that of the run
            exact = self.train("fp32")
            deltas = {base: numpy.frombuffer(payload, "<f4") for base, (_, _, payload, _) in exact.items()}
            for base, delta in deltas.items():
                self.assertGreater(numpy.count_nonzero(delta), delta.size / 2, base)
            self.assertFalse((deltas[0] == deltas[1]).all())
            for codec in ("e3m0", "int4"):
                for _, _, payload, residual in self.train(codec, deltas).values():
                    self.assertLess(len(payload), len(exact[0][2]) / 6)
                    self.assertTrue(any(residual), "without a loss in the encoding its residual shows nothing")


if __name__ == "__main__":
    unittest.main()
