"""Averaged tensors in overlapped runs and in runs with privacy, compared with the outer step in NumPy.

Two workers in threads add fixed numbers to their arrays at every step. So the pseudo-gradient of a contribution is minus its steps times
these numbers, whenever the answer of the push before it was used. The round records have the steps of each contribution.
"""
import threading
import time
import unittest

import numpy

import atoll
from fixture import RunTest, config

# A fragment gets the largest tensor first, so each of the two has a parameter and an averaged tensor.
SIZES = {"a": 600, "b": 500, "c": 400, "d": 300}
FRAGMENTS = {0: ("a", "d"), 1: ("b", "c")}
FIRST_OF_FRAGMENTS = [names[0] for names in FRAGMENTS.values()]
AVERAGED = ("c", "d")
ETA, MU = 0.5, 0.5  # with steps in eighths, all float32 values of a short run are exact
ROUNDS, CYCLE = 3, 64
PAUSE_S = 0.1
EXACT = {"push": "fp32", "pull_delta": "none"}


def pace(worker, name):
    """What the worker adds to the array at each step."""
    numbers = numpy.random.default_rng([worker, ord(name)]).integers(1, 16, SIZES[name])
    return (numbers * (1 if worker else -1) / 8).astype(numpy.float32)


def clipped(delta, bound):
    """The parts of a pseudo-gradient after clipping; they have one norm together."""
    norm = numpy.sqrt(sum((part.astype(float) ** 2).sum() for part in delta.values()))
    return {name: part * min(1, bound / norm) for name, part in delta.items()} if bound else delta


def published_by_hand(contributions, names, bound=0):
    """The values after these versions: [{worker: steps}] of a fragment, each clipped to the bound."""
    theta = {name: numpy.zeros(SIZES[name]) for name in names}
    velocity = {name: numpy.zeros(SIZES[name]) for name in names}
    for steps in contributions:
        deltas = [clipped({name: -count * pace(int(worker[1:]), name) for name in names}, bound) for worker, count in steps.items()]
        for name in names:
            mean = sum(delta[name] for delta in deltas) / len(deltas)
            if name in AVERAGED:
                theta[name] = theta[name] - mean
                continue
            velocity[name] = MU * velocity[name] + mean
            theta[name] = theta[name] - ETA * (mean + MU * velocity[name])
    return theta


class Adder(threading.Thread):
    """A worker. In an overlapped run its steps are slow while an answer is late, as those of fixed_worker.py: it takes few of them until the
    answer is there, and a contribution does not count more than four cycles."""

    def __init__(self, worker, address, options, cycle):
        super().__init__(daemon=True)
        self.worker, self.address, self.options, self.cycle = worker, address, options, cycle
        self.arrays = {name: numpy.zeros(size, numpy.float32) for name, size in SIZES.items()}
        self.failure, self.end_reason = None, None
        self.start()

    def run(self):
        try:
            added = {name: pace(self.worker, name) for name in SIZES}
            left, steps, answers = None, 0, 0
            with atoll.join(self.address, self.arrays, buffers=AVERAGED, **self.options) as run:
                while run.running:
                    # An answer replaces all arrays of its fragment.
                    answers += sum(left is not None and (self.arrays[name] != left[name]).any() for name in FIRST_OF_FRAGMENTS)
                    for name, array in self.arrays.items():
                        array += added[name]
                    left = {name: self.arrays[name].copy() for name in FIRST_OF_FRAGMENTS}
                    if self.cycle and answers < steps * len(FRAGMENTS) // self.cycle:
                        time.sleep(PAUSE_S)
                    steps += 1
                    run.step(loss=1.0, tokens=3, samples=3)
            self.end_reason = run.end_reason
        except BaseException as failure:  # noqa: BLE001  the test's thread looks at it
            self.failure = failure


class AveragedTest(RunTest):
    def train(self, steps, cycle=0, workers=2, **sections):
        """The published values, and the workers."""
        hub = self.coordinator(config(
            rounds=ROUNDS, steps=steps, workers=workers, codec=EXACT, merge={"weights": "uniform"}, outer={"learning_rate": ETA, "momentum": MU},
            **sections))
        adders = [Adder(worker, hub.data, self.options(f"w{worker}"), cycle) for worker in range(workers)]
        for adder in adders:
            adder.join()
            self.assertIsNone(adder.failure)
            self.assertEqual(adder.end_reason, atoll.EndReason.FINISHED)
        published = {name: numpy.array(values) for name, values in atoll.pull(hub.data).items()}
        hub.ctl("verify")
        return published, adders

    def contributions(self, fragment):
        found = self.hub.contributed_steps(fragment)
        self.assertEqual(sorted(found), list(range(1, max(found) + 1)))
        self.assertGreaterEqual(len(found), ROUNDS)
        self.assertEqual({tuple(sorted(steps)) for steps in found.values()}, {("w0", "w1")})
        return [found[version] for version in sorted(found)]

    def overlapped(self, bound=0.0, **sections):
        """`bound`: of a fragment's pseudo-gradient."""
        published, adders = self.train(CYCLE, CYCLE, sync={"mode": "overlapped", "fragments": 2, "delay_steps": 2}, **sections)
        for fragment, names in FRAGMENTS.items():
            by_hand = published_by_hand(self.contributions(fragment), names, bound)
            for name in names:
                yield name, published[name], by_hand[name], [adder.arrays[name] for adder in adders]

    def test_overlapped(self):
        for name, published, by_hand, local in self.overlapped():
            self.assertEqual(published.tolist(), by_hand.tolist(), name)
            for worker, values in enumerate(local):  # what it holds is the published values, and its steps since its last push
                since = set(((values - published) / pace(worker, name)).tolist())
                self.assertEqual(len(since), 1, (name, worker, since))
                self.assertGreaterEqual(min(since), 0, (name, worker))

    def test_overlapped_with_clipping(self):
        clip_norm = 5.0
        for name, published, by_hand, _ in self.overlapped(clip_norm / numpy.sqrt(2), privacy={"clip_norm": clip_norm}):
            numpy.testing.assert_allclose(published, by_hand, rtol=1e-4, atol=1e-5, err_msg=name)

    def check_blocking(self, clip_norm, clips):
        published, _ = self.train(2, privacy={"clip_norm": clip_norm})
        contributions = self.contributions(0)
        self.assertEqual(contributions, [{"w0": 2, "w1": 2}] * ROUNDS)
        by_hand, free = published_by_hand(contributions, SIZES, clip_norm), published_by_hand(contributions, SIZES)
        for name in SIZES:
            numpy.testing.assert_allclose(published[name], by_hand[name], rtol=1e-4, atol=1e-5, err_msg=name)
            self.assertNotEqual(numpy.allclose(published[name], free[name], rtol=1e-2), clips, name)

    def test_clipping(self):
        self.check_blocking(5.0, clips=True)  # two steps have a norm of about 96

    def test_a_bound_that_is_not_reached(self):
        self.check_blocking(1e6, clips=False)

    def test_noise_is_in_averaged_tensors_too(self):
        """Local values do not move, so a version has moved by the noise of a single worker."""
        clip_norm, multiplier = 0.01, 2.0
        hub = self.coordinator(config(
            rounds=1, steps=1, codec=EXACT, merge={"weights": "uniform"}, outer={"learning_rate": 1, "momentum": 0},
            evaluation={"by": "evaluator"}, privacy={"clip_norm": clip_norm, "noise_multiplier": multiplier}))
        arrays = {"w": numpy.zeros(4096, numpy.float32), "mean": numpy.ones(4096, numpy.float32)}
        with atoll.join(hub.data, arrays, buffers=["mean"], **self.options()) as run:
            while run.running:
                run.step(loss=1.0, tokens=3, samples=3)
        published = atoll.pull(hub.data)
        for name, start in (("w", 0), ("mean", 1)):
            moved = numpy.array(published[name], float) - start
            # Nine standard errors of 4096 values.
            self.assertAlmostEqual(moved.std() / (clip_norm * multiplier), 1, delta=0.1, msg=name)
            self.assertLess(abs(moved.mean()), 9 * clip_norm * multiplier / 64, name)
            self.assertGreater(numpy.unique(moved).size, 4000, name)


if __name__ == "__main__":
    unittest.main()
