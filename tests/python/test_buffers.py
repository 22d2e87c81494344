"""atoll.join(buffers="mean"): float buffers become the mean of all workers, without the outer optimizer."""
import math
import signal
import threading
import time
import unittest

import numpy
import torch

import atoll
from atoll.distributed import Island
from atoll.torch_model import TorchModel
from fixture import RunTest, config, wait_for

STEPS, LEARNING_RATE, ETA, MU = 3, 0.1, 0.7, 0.9  # as fixture.config has them
STATISTICS = ("0.running_mean", "0.running_var")
EXACT = {"push": "fp32", "pull_delta": "none"}


def make():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4, momentum=0.5), torch.nn.Linear(4, 70), torch.nn.Tanh(), torch.nn.Linear(70, 1))
    return model, torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)


def batches(worker):
    """Each worker's own data: another mean and another variance."""
    generator = torch.Generator().manual_seed(worker)
    inputs = [torch.randn(3, 4, generator=generator) * (1 + worker) + 2 * worker for _ in range(STEPS)]
    return [(x, x.sum(1, keepdim=True)) for x in inputs]


def take_step(model, optimizer, batch):
    (model(batch[0]) - batch[1]).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def averaging(module):
    return TorchModel(module, Island(), average_buffers=True)


def floats(values):
    return memoryview(bytearray(numpy.asarray(values, numpy.float32).tobytes())).cast("f")


class Odd(torch.nn.Module):
    """Buffers of all kinds."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("rounded", torch.ones(3, dtype=torch.float16))
        self.register_buffer("steps", torch.tensor(7))
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
        self.register_buffer("empty", torch.zeros(0))
        self.register_buffer("none", None)
        self.register_buffer("table", torch.ones(5), persistent=False)
        self.inner = torch.nn.Module()
        self.inner.register_buffer("same", self.scale)
        self.inner.norm = torch.nn.BatchNorm1d(2, affine=False)


class ModuleTest(unittest.TestCase):
    def names(self, module):
        return [(spec.name, spec.shape) for spec in averaging(module).specs if spec.averaged]

    def test_persistent_float_buffers_once(self):
        expected = [("scale", ()), ("rounded", (3,)), ("inner.norm.running_mean", (2,)), ("inner.norm.running_var", (2,))]
        self.assertEqual(self.names(Odd()), expected)
        self.assertEqual(self.names(torch.nn.DataParallel(Odd())), expected)
        if hasattr(torch, "compile"):
            self.assertEqual(self.names(torch.compile(Odd(), backend="eager")), expected)

    def test_parameters_come_first_and_nothing_is_averaged_unasked(self):
        specs = averaging(Odd()).specs
        self.assertEqual((specs[0].name, specs[0].averaged, specs[0].flags, specs[1].flags), ("weight", False, 0, 2))
        self.assertEqual([spec.name for spec in TorchModel(Odd(), Island()).specs], ["weight"])

    def test_values_go_in_and_out_in_place(self):
        module = Odd()
        model, held = averaging(module), module.inner.norm.running_mean
        index = {spec.name: i for i, spec in enumerate(model.specs)}
        model.write(index["inner.norm.running_mean"], floats([3, -4]))
        self.assertEqual(held.tolist(), [3, -4])
        model.write(index["scale"], floats([0.25]))
        self.assertEqual((module.scale.item(), module.inner.same.item()), (0.25, 0.25))
        out = floats([0])
        model.read(index["scale"], out)
        self.assertEqual(list(out), [0.25])

    def test_a_variance_is_not_below_zero(self):
        module = Odd()
        model = averaging(module)
        index = [spec.name for spec in model.specs].index("inner.norm.running_var")
        model.write(index, floats([-0.125, 0.5]))
        self.assertEqual(module.inner.norm.running_var.tolist(), [0, 0.5])

    def test_a_half_buffer_has_a_master_copy(self):
        module = Odd()
        model = averaging(module)
        index = [spec.name for spec in model.specs].index("rounded")
        model.write(index, floats([0.1, 0.2, 0.3]))
        out = floats([0, 0, 0])
        model.read(index, out)
        self.assertEqual(list(out), list(floats([0.1, 0.2, 0.3])))

    def test_a_module_may_replace_its_buffer_but_not_reshape_or_drop_it(self):
        module = Odd()
        model = averaging(module)
        module.scale = module.scale * 3
        model.check_unchanged()
        out = floats([0])
        model.read(1, out)
        self.assertEqual(list(out), [6])
        module.scale = torch.ones(2)
        with self.assertRaisesRegex(atoll.FailedPrecondition, r"'scale' has the shape \[2\], but had \[\]"):
            model.check_unchanged()
        del module.scale
        with self.assertRaisesRegex(atoll.FailedPrecondition, "the buffer 'scale' is gone"):
            model.check_unchanged()

    def test_a_buffer_without_a_shape(self):
        with self.assertRaisesRegex(atoll.InvalidArgument, "the buffer '0.running_mean' has no shape yet"):
            averaging(torch.nn.Sequential(torch.nn.LazyBatchNorm1d(affine=False), torch.nn.Linear(2, 2)))


class AveragedRun(RunTest):
    """Two workers in threads, with data of their own."""

    def train(self, hub, pace=0.0):
        """{version: [state_dict of w0, of w1]}, as the loops saw them at the beginning of each round."""
        seen, ends, failures = {}, {}, []
        made = [make() for _ in range(2)]  # here, because the threads share the generator of the initial values

        def work(worker):
            try:
                model, optimizer = made[worker]
                with atoll.join(hub.data, model, optimizer, buffers="mean", **self.options(f"w{worker}")) as run:
                    for batch in run.steps(batches(worker)):
                        seen.setdefault(run.version, {}).setdefault(worker, {k: v.clone() for k, v in model.state_dict().items()})
                        take_step(model, optimizer, batch)
                        time.sleep(pace)
                ends[worker] = run.end_reason, int(model[0].num_batches_tracked)
            except BaseException as failure:  # shown by the main thread
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2)]
        for thread in threads:
            thread.start()
        if pace:
            wait_for(lambda: hub.head() >= 2 or failures, "two rounds")
            hub.stop(signal.SIGKILL)
            hub.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.ends = ends
        return {version: [found[worker] for worker in sorted(found)] for version, found in seen.items()}

    def by_hand(self, rounds):
        """[{name: float32}] of the versions: the same two workers, and the outer step in NumPy."""
        start, _ = make()
        theta = {k: v.numpy().copy() for k, v in start.state_dict().items() if v.is_floating_point()}
        velocity = {k: numpy.zeros_like(v) for k, v in theta.items()}
        versions, means = [{k: v.copy() for k, v in theta.items()}], []
        eta, mu, half = numpy.float32(ETA), numpy.float32(MU), numpy.float32(0.5)
        for _ in range(rounds):
            local = []
            for worker in range(2):
                model, optimizer = make()
                model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in theta.items()}, strict=False)
                for batch in batches(worker):
                    take_step(model, optimizer, batch)
                local.append({k: v.numpy().copy() for k, v in model.state_dict().items() if k in theta})
            means.append({k: (local[0][k].astype(float) + local[1][k]) / 2 for k in STATISTICS})
            for k in theta:
                mean = half * (theta[k] - local[0][k]) + half * (theta[k] - local[1][k])
                if k in STATISTICS:
                    theta[k] = theta[k] - mean
                    continue
                velocity[k] = mu * velocity[k] + mean
                theta[k] = theta[k] - eta * (mean + mu * velocity[k])
            versions.append({k: v.copy() for k, v in theta.items()})
        return versions, means

    def check(self, seen, published, rounds):
        versions, means = self.by_hand(rounds)
        self.assertEqual(sorted(seen), list(range(rounds)))
        for version, (first, second) in seen.items():
            for name, expected in versions[version].items():
                self.assertTrue(torch.equal(first[name], second[name]), (version, name))
                numpy.testing.assert_allclose(first[name].numpy(), expected, rtol=2e-5, atol=2e-6, err_msg=f"{version} {name}")
            for name in STATISTICS if version else ():
                numpy.testing.assert_allclose(first[name].numpy(), means[version - 1][name], rtol=1e-5, atol=1e-6, err_msg=name)
        self.assertEqual(sorted(published), sorted(versions[0]))
        for name, expected in versions[rounds].items():
            numpy.testing.assert_allclose(published[name].numpy(), expected, rtol=2e-5, atol=2e-6, err_msg=name)
        # Nesterov would have moved them 1.33 times as far.
        moved = numpy.abs(versions[1]["0.running_mean"] - versions[0]["0.running_mean"])
        self.assertGreater(moved.max(), 0.1)
        self.assertEqual(self.ends, {worker: (atoll.EndReason.FINISHED, STEPS * rounds) for worker in range(2)})

    def test_both_have_the_mean_while_parameters_follow_nesterov(self):
        hub = self.coordinator(rounds=3, steps=STEPS, workers=2, codec=EXACT)
        seen = self.train(hub)
        published = atoll.pull(hub.data)
        self.check(seen, published, 3)
        self.assertEqual([t["name"] for t in published.run["tensors"] if t["averaged"]], list(STATISTICS))
        model, _ = make()
        model.load_state_dict(published, strict=False)
        self.assertTrue(torch.equal(model[0].running_var, published["0.running_var"]))

    def test_a_killed_coordinator_continues_with_the_same_values(self):
        hub = self.coordinator(rounds=6, steps=STEPS, workers=2, codec=EXACT)
        seen = self.train(hub, pace=0.05)
        self.check(seen, atoll.pull(hub.data), 6)
        self.assertEqual(hub.contributors(), {version: ["w0", "w1"] for version in range(1, 7)})
        hub.ctl("verify")  # fails when a version differs
        hub.stop(signal.SIGKILL)
        hub.start()
        self.check(seen, atoll.pull(hub.data), 6)

    def test_coarse_codecs_find_the_mean(self):
        hub = self.coordinator(rounds=12, steps=STEPS, workers=2, codec={"push": "e3m0", "pull_delta": "e3m0"}, learning_rate=0.01,
                               outer={"momentum": 0.5})
        seen = self.train(hub)
        for version, (first, second) in seen.items():
            for name in (*STATISTICS, "1.weight"):
                self.assertTrue(torch.equal(first[name], second[name]), (version, name))
            self.assertTrue((first["0.running_var"] >= 0).all())
        hub.ctl("verify")
        statistics = [[], []]  # the last local ones on the exact fixed point, which depends on the data alone
        mean = {name: numpy.zeros(4) for name in STATISTICS}
        for worker in range(2):
            norm = torch.nn.BatchNorm1d(4, momentum=0.5)
            for _ in range(20):
                for inputs, _ in batches(worker):
                    norm(inputs)
            statistics[worker] = [norm.running_mean.numpy().copy(), norm.running_var.numpy().copy()]
            for name, values in zip(STATISTICS, statistics[worker]):
                mean[name] += values / 2
        published = atoll.pull(hub.data)
        for index, name in enumerate(STATISTICS):
            spread = numpy.abs(statistics[0][index] - statistics[1][index]).max()
            off = numpy.abs(published[name].numpy() - mean[name]).max()
            self.assertLess(off, 0.25 * spread, name)

    def test_a_buffer_that_is_not_finite_is_found_before_the_push(self):
        hub = self.coordinator(rounds=2, steps=2, codec=EXACT)
        model, optimizer = make()
        poisoned, restored = 0, 0
        with atoll.join(hub.data, model, optimizer, buffers="mean", **self.options()) as run:
            for batch in run.steps(batches(0)):
                if poisoned and not restored:
                    restored = math.isfinite(model[0].running_mean[1])
                take_step(model, optimizer, batch)
                if not poisoned and run.version == 1:
                    poisoned = 1
                elif poisoned == 1:
                    poisoned = 2
                    model[0].running_mean[1] = math.nan
        self.assertEqual(poisoned, 2)
        self.assertTrue(restored)
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"]})
        self.assertTrue(all(torch.isfinite(tensor).all() for tensor in atoll.pull(hub.data).values()))

    def test_arrays_are_averaged_by_name(self):
        hub = self.coordinator(rounds=2, steps=1, batch=1, codec=EXACT)
        arrays = {"w": numpy.zeros(2, numpy.float32), "mean": numpy.zeros(3, numpy.float32)}
        with atoll.join(hub.data, arrays, buffers=["mean"], **self.options()) as run:
            while run.running:
                arrays["w"] += 1
                arrays["mean"][:] = run.version + 0.5
                run.step()
        published = atoll.pull(hub.data)
        self.assertEqual([float(x) for x in published["mean"]], [1.5] * 3)
        self.assertGreater(float(published["w"][0]), 2)  # with momentum, further than the worker went


class CountTest(RunTest):
    def test_the_number_for_the_configuration(self):
        """Tied weights once, buffers only where they are averaged, frozen parameters not at all; and a run agrees."""
        for buffers in (None, "mean"):
            with self.subTest(buffers=buffers):
                self.fresh()
                model, optimizer = make()
                model[3].bias.requires_grad_(False)
                model.register_parameter("tied", model[1].weight)
                number = atoll.count_parameters(model, buffers=buffers)
                self.assertEqual(number, 2 * 4 + 5 * 70 + 70 + (8 if buffers else 0))
                hub = self.coordinator(model={"external": {"parameters": number}})
                with atoll.join(hub.data, model, optimizer, buffers=buffers, **self.options()) as run:
                    run.stop()
        self.assertEqual(atoll.count_parameters({"w": numpy.zeros((2, 3), numpy.float32), "s": numpy.zeros(2, numpy.float32)}, ["s"]), 8)


class MismatchTest(RunTest):
    def seeded(self, buffers):
        hub = self.coordinator(rounds=50, workers=2)
        model, optimizer = make()
        with atoll.join(hub.data, model, optimizer, buffers=buffers, **self.options()) as run:
            run.stop()
            for batch in run.steps(batches(0)):
                take_step(model, optimizer, batch)
        return hub

    def join(self, hub, buffers):
        model, optimizer = make()
        return atoll.join(hub.data, model, optimizer, buffers=buffers, **self.options("w1"))

    def test_a_worker_without_buffers_in_a_run_with_them(self):
        hub = self.seeded("mean")
        with self.assertRaisesRegex(atoll.AtollError, r"'0.running_mean' is missing, and has shape \[4\] in the run, which averages it"):
            self.join(hub, None)

    def test_a_worker_with_buffers_in_a_run_without_them(self):
        hub = self.seeded(None)
        with self.assertRaisesRegex(atoll.AtollError, r"averaged tensor '0.running_mean' of shape \[4\] is not in the run"):
            self.join(hub, "mean")

    def test_async_rounds_need_the_delayed_optimizer(self):
        self.coordinator(config(rounds=3, workers=2, round={"mode": "async", "staleness_limit": 1}, outer={"optimizer": "sgd", "momentum": 0}))
        with self.assertRaisesRegex(atoll.AtollError, "averaged tensors such as '0.running_mean' needs delayed_nesterov"):
            self.join(self.hub, "mean")


if __name__ == "__main__":
    unittest.main()
