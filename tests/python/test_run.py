"""What atoll.join promises, with a real coordinator and a small model."""
import collections
import io
import itertools
import json
import math
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock
import warnings

import numpy
import torch

import atoll
from atoll.data_order import PartitionSampler, SampleOrder, uneven_reading
from atoll.signals import SIGNALS, DrainOnSignal
from fixture import HERE, Coordinator, RunTest, config, python_environment, wait_for


def data(samples=12, seed=1):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 4, generator=generator)
    return torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))


def loader(batch_size=3, **more):
    return torch.utils.data.DataLoader(data(), batch_size=batch_size, **more)


def model_and_optimizer(seed=7, kind=torch.optim.SGD, **more):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    return model, kind(model.parameters(), lr=0.5, **more)


def take_step(model, optimizer, batch):
    inputs, targets = batch
    loss = (model(inputs) - targets).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


class RunSemantics(RunTest):
    def train(self, run, model, optimizer, batches=None):
        count = 0
        for batch in run.steps(batches or loader()):
            take_step(model, optimizer, batch)
            count += 1
        return count

    def test_the_loop_ends_with_the_run(self):
        hub = self.coordinator(rounds=3, steps=4)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.assertEqual(run.version, 0)
            self.assertTrue(run.running)
            self.assertEqual(run.config["run"], "python-test")
            self.assertEqual([t["name"] for t in run.config["tensors"]], ["0.weight", "0.bias", "2.weight", "2.bias"])
            self.assertEqual(self.train(run, model, optimizer), 12)
            self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
            self.assertFalse(run.running)
            self.assertEqual(run.samples, 36)
        self.assertEqual(hub.head(), 3)
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"], 3: ["w0"]})

    def test_the_outer_step_is_applied(self):
        """One round of SGD by hand: theta1 = theta0 - 0.7 (1 + 0.9) (theta0 - local)."""
        hub = self.coordinator(rounds=1, steps=2, learning_rate=0.1, codec={"push": "fp32", "pull_delta": "none"})
        model, optimizer = model_and_optimizer()
        by_hand, _ = model_and_optimizer()
        for _, batch in zip(range(2), loader()):
            (by_hand(batch[0]) - batch[1]).square().mean().backward()
            with torch.no_grad():
                for p in by_hand.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
        start, _ = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.train(run, model, optimizer)
        published = atoll.pull(hub.data)
        self.assertEqual(published.version, 1)
        for (name, local), before in zip(by_hand.named_parameters(), start.parameters()):
            expected = before - 0.7 * 1.9 * (before - local)
            torch.testing.assert_close(published[name], expected.detach(), rtol=1e-5, atol=1e-6)

    def test_the_values_of_the_model_after_the_end(self):
        """docs/reference/python.md, "The end": published ones only after the end of a blocking run."""
        overlapped = {"mode": "overlapped", "fragments": 1, "delay_steps": 2}
        for name, drains, sync in (("finished", False, {}), ("drained", True, {}), ("overlapped", False, overlapped)):
            hub = self.coordinator(rounds=3, steps=4, **({"sync": sync} if sync else {}))
            model, optimizer = model_and_optimizer()
            with atoll.join(hub.data, model, optimizer, **self.options(name)) as run:
                for count, batch in enumerate(run.steps(loader())):
                    take_step(model, optimizer, batch)
                    if drains and count == 5:
                        run.drain()
            if drains:
                wait_for(lambda: hub.head() == 2, "the last push to be merged")
            published = atoll.pull(hub.data)
            equal = all(torch.equal(published[key], value) for key, value in model.state_dict().items())
            self.assertEqual(equal, name == "finished", name)
            hub.stop(signal.SIGKILL)
            shutil.rmtree(self.folder / "coordinator")

    def test_the_runs_learning_rate_is_set_in_proportion(self):
        hub = self.coordinator(rounds=1, steps=3, learning_rate=0.1, inner={"warmup_steps": 3})
        model, _ = model_and_optimizer()
        optimizer = torch.optim.SGD([{"params": model[0].parameters(), "lr": 2.0}, {"params": model[2].parameters(), "lr": 0.5}])
        rates = []
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for batch in run.steps(loader()):
                rate = run.learning_rate
                take_step(model, optimizer, batch)
                rates.append((rate, [group["lr"] for group in optimizer.param_groups]))
        self.assertEqual(len({rate for rate, _ in rates}), 3)
        for rate, groups in rates:
            self.assertEqual(groups, [rate, rate * 0.25])

    def test_my_own_learning_rate_stays(self):
        hub = self.coordinator(rounds=1, steps=3)
        model, optimizer = model_and_optimizer()
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        rates = []
        with atoll.join(hub.data, model, optimizer, learning_rate="mine", also_save={"scheduler": scheduler}, **self.options()) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
                rates.append(optimizer.param_groups[0]["lr"])
                scheduler.step()
        self.assertEqual(rates, [0.5, 0.25, 0.125])

    def test_a_scheduler_with_functions_in_its_state_continues(self):
        """PyTorch 1.13 has a method in the state of OneCycleLR."""
        hub = self.coordinator(rounds=4, steps=3)
        places = []
        for _ in range(2):
            model, optimizer = model_and_optimizer(momentum=0.5)
            one = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
            parts = [torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, cycle_momentum=False),
                     torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)]
            sequence = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[50])
            with atoll.join(hub.data, model, optimizer, learning_rate="mine", also_save={"one": one, "sequence": sequence},
                            **self.options()) as run:
                places.append((one.last_epoch, sequence.last_epoch))
                for count, batch in enumerate(run.steps(loader())):
                    take_step(model, optimizer, batch)
                    one.step()
                    sequence.step()
                    if count == 5:
                        run.drain()
        self.assertEqual(places, [(0, 0), (6, 6)])
        self.assertEqual((one.last_epoch, sequence.last_epoch), (12, 12))

    def test_the_loss_needs_no_line(self):
        hub = self.coordinator(rounds=1, steps=2)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            losses = []
            for batch in run.steps(loader()):
                if losses:
                    self.assertAlmostEqual(run.status()["loss"], losses[-1], places=5)
                losses.append(take_step(model, optimizer, batch).item())

    def test_a_reported_loss_wins(self):
        hub = self.coordinator(rounds=1, steps=2)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for index, batch in enumerate(run.steps(loader())):
                if index:
                    self.assertAlmostEqual(run.status()["loss"], 42.0)
                take_step(model, optimizer, batch)
                run.loss = torch.tensor(42.0)

    def test_gradient_accumulation_counts_optimizer_steps(self):
        hub = self.coordinator(rounds=1, steps=3, batch=6)
        model, optimizer = model_and_optimizer()
        batches = 0
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for inputs, targets in run.steps(loader()):
                ((model(inputs) - targets).square().mean() / 2).backward()
                batches += 1
                if batches % 2 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        self.assertEqual(batches, 6)
        self.assertEqual(hub.tokens(), 18)

    def test_a_loop_without_steps(self):
        hub = self.coordinator(rounds=2, steps=3)
        model, optimizer = model_and_optimizer()
        count = 0
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            while run.running:
                loss = take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
                run.step(loss=loss, tokens=3, samples=3)
                count += 1
            self.assertEqual(run.samples, 18)
        self.assertEqual(count, 6)

    def test_numpy_arrays_without_an_optimizer(self):
        hub = self.coordinator(rounds=2, steps=3)
        weights = {"w": numpy.ones((2, 3), numpy.float32), "b": numpy.zeros((), numpy.float32)}
        with atoll.join(hub.data, weights, **self.options()) as run:
            while run.running:
                weights["w"] -= numpy.float32(run.learning_rate)
                run.step(loss=1.5, tokens=3, samples=3)
        published = atoll.pull(hub.data)
        self.assertEqual(published.version, 2)
        self.assertEqual(tuple(published["w"].shape), (2, 3))
        self.assertLess(float(published["w"][0, 0]), 1.0)
        self.assertEqual(float(published["b"]), 0.0)

    def test_a_loss_that_is_not_known_drops_nothing(self):
        for unknown, steps in ((math.nan, 2), (math.inf, 2 + 1)):
            hub = self.coordinator(rounds=1, steps=2)
            weights, count = {"w": numpy.ones(3, numpy.float32)}, 0
            with atoll.join(hub.data, weights, **self.options(f"w{count}{unknown}")) as run:
                while run.running:
                    run.step(loss=unknown if count == 0 else 1.0, tokens=3, samples=3)
                    count += 1
            self.assertEqual(count, steps, unknown)  # the step with an infinite loss is dropped
            hub.stop(signal.SIGKILL)
            shutil.rmtree(self.folder / "coordinator")

    def test_without_pytorch_and_without_numpy(self):
        for more, kind in ((["--numpy"], "ndarray"), ([], "memoryview")):
            hub = self.coordinator(rounds=2, steps=3)
            worker = self.spawn("plain_worker.py", hub.data, self.folder / kind, *more, log=f"{kind}.log")
            self.assertEqual(worker.wait(60), 0, self.log(f"{kind}.log"))
            self.assertIn(f"{kind} (2, 3) 2 1.0 True", self.log(f"{kind}.log"))
            hub.stop(signal.SIGKILL)
            shutil.rmtree(self.folder / "coordinator")

    def test_non_finite_steps_are_skipped_and_the_round_is_dropped(self):
        hub = self.coordinator(rounds=2, steps=3)
        model, optimizer = model_and_optimizer(kind=torch.optim.AdamW)
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for count, batch in enumerate(run.steps(loader())):
                loss = (model(batch[0]) - batch[1]).square().mean() * (math.nan if count == 1 else 1)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                self.assertTrue(all(torch.isfinite(p).all() for p in model.parameters()))
            self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertTrue(all(torch.isfinite(v["exp_avg"]).all() for v in optimizer.state.values()))
        self.assertEqual(count + 1, 2 + 6)  # two steps of the dropped round, then both rounds
        self.assertTrue(all(torch.isfinite(tensor).all() for tensor in atoll.pull(hub.data).values()))

    def test_leaving_the_loop_drains(self):
        hub = self.coordinator(rounds=3, steps=10)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for count, batch in enumerate(run.steps(loader())):
                take_step(model, optimizer, batch)
                if count == 3:
                    break
        self.assertEqual(run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 1, "the pushed steps to be merged")
        self.assertEqual(hub.tokens(), 12)

    def test_the_end_of_an_iterator_drains(self):
        hub = self.coordinator(rounds=3, steps=10)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.assertEqual(self.train(run, model, optimizer, iter(loader())), 4)
        self.assertEqual(run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 1, "the pushed steps to be merged")

    def test_an_exception_leaves_without_a_push(self):
        hub = self.coordinator(rounds=3, steps=4)
        model, optimizer = model_and_optimizer()
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        with self.assertRaises(ZeroDivisionError):
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)
                    1 / 0
        self.assertEqual((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)), before)
        self.assertNotIn("step", vars(optimizer))
        self.assertEqual(hub.head(), 0)
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:  # and it can come back
            self.assertEqual(self.train(run, model, optimizer), 12)

    def drained_by(self, number):
        hub = self.coordinator(rounds=3, steps=10)
        model, optimizer = model_and_optimizer()
        before = signal.getsignal(number)
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for count, batch in enumerate(run.steps(loader())):
                take_step(model, optimizer, batch)
                if count == 2:
                    os.kill(os.getpid(), number)
        self.assertEqual(run.end_reason, atoll.EndReason.DRAINED)
        self.assertEqual(signal.getsignal(number), before)
        wait_for(lambda: hub.head() == 1, "the pushed steps to be merged")
        self.assertEqual(hub.tokens(), 9)

    def test_ctrl_c_drains(self):
        self.drained_by(signal.SIGINT)

    def test_sigterm_drains(self):
        self.drained_by(signal.SIGTERM)

    def test_one_signal_drains_all_runs_of_the_process(self):
        before = [signal.getsignal(number) for number in SIGNALS]
        loops = []
        for name in ("w0", "w1"):  # each in a run of its own, so that neither waits for the other
            (self.folder / name).mkdir()
            hub = Coordinator(self.folder / name, config(rounds=1000, steps=2)).start()
            self.addCleanup(hub.stop, signal.SIGKILL)
            model, optimizer = model_and_optimizer()
            run = atoll.join(hub.data, model, optimizer, **self.options(name))
            self.addCleanup(run.abandon)
            loops.append((run, model, optimizer, iter(run.steps(loader()))))

        def step_all():
            for _, model, optimizer, batches in loops:
                batch = next(batches, None)
                if batch is not None:
                    take_step(model, optimizer, batch)

        step_all()
        os.kill(os.getpid(), signal.SIGTERM)
        wait_for(lambda: step_all() or not any(run.running for run, *_ in loops), "both runs to leave")
        self.assertEqual([run.end_reason for run, *_ in loops], [atoll.EndReason.DRAINED] * 2)
        for run, *_ in loops:  # in the order in which they were opened
            run.close()
        self.assertEqual([signal.getsignal(number) for number in SIGNALS], before)

    def test_ctrl_c_in_a_terminal_reaches_the_engine_too(self):
        hub = self.coordinator(rounds=1000, steps=10)
        worker = self.spawn("small_worker.py", hub.data, "w0", self.folder / "state", self.folder / "journal", "--pace", "0.02", session=True)
        wait_for(lambda: hub.head() >= 1, "a round")
        os.killpg(worker.pid, signal.SIGINT)
        self.assertEqual(worker.wait(60), 0, self.log())
        self.assertIn("ended: drained", self.log())

    def test_a_second_ctrl_c_stops(self):
        hub = self.coordinator(rounds=3, steps=10)
        model, optimizer = model_and_optimizer()
        with self.assertRaises(KeyboardInterrupt):
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)
                    os.kill(os.getpid(), signal.SIGINT)
                    os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual(hub.head(), 0)

    def test_a_command_of_the_operator_drains_and_stops(self):
        hub = self.coordinator(rounds=1000, steps=10)
        model, optimizer = model_and_optimizer()
        for command, reason in (("workers drain w0", atoll.EndReason.DRAINED), ("run stop --yes", atoll.EndReason.STOPPED)):
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                for count, batch in enumerate(run.steps(loader())):
                    take_step(model, optimizer, batch)
                    if count == 5:
                        hub.ctl(*command.split())
            self.assertEqual(run.end_reason, reason, command)

    def test_a_restart_by_command_joins_again_in_the_same_process(self):
        hub = self.coordinator(rounds=6, steps=10)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for count, batch in enumerate(run.steps(loader())):
                take_step(model, optimizer, batch)
                if count == 5:
                    hub.ctl("workers", "restart", "w0")
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(sorted(hub.contributors()), [1, 2, 3, 4, 5, 6])

    def test_evaluation_leaves_mode_and_generators_alone(self):
        hub = self.coordinator(rounds=2, steps=3)
        model, optimizer = model_and_optimizer()
        model.append(torch.nn.Dropout(0.5))
        model[1].eval()  # a part that the user keeps in evaluation mode
        seen = []

        def evaluate(module, batches):
            seen.append((module is model, module.training, torch.is_grad_enabled(), batches, torch.rand(1).item()))
            return 2.5, 9

        drawn = []
        with atoll.join(hub.data, model, optimizer, evaluate=evaluate, **self.options()) as run:
            for batch in run.steps(loader()):
                self.assertTrue(model.training and not model[1].training)
                torch.manual_seed(len(drawn))
                take_step(model, optimizer, batch)
                drawn.append(torch.rand(1).item())
        self.assertGreaterEqual(len(seen), 2)
        self.assertEqual({entry[:4] for entry in seen}, {(True, False, False, 40)})
        losses = [json.loads(line) for line in hub.ctl("metrics", "export", "--format", "jsonl").splitlines()]
        self.assertIn(2.5, [point["value"] for point in losses if point["name"] == "validation/loss"])

    def test_without_an_evaluation_function_the_run_goes_on(self):
        hub = self.coordinator(rounds=2, steps=3)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.assertEqual(self.train(run, model, optimizer), 6)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertNotIn("diverged", (self.folder / "w0.log").read_text())

    def test_shared_data_is_divided(self):
        hub = self.coordinator(rounds=2, steps=2, data={"mode": "shared", "partitions": 4})
        model, optimizer = model_and_optimizer()
        seen = []
        batches = torch.utils.data.DataLoader(torch.arange(40), batch_size=3)
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            from atoll.data_order import PartitionSampler
            self.assertEqual(run.partitions, 4)
            for batch in run.steps(batches):
                seen.append((run.partition, batch.tolist()))
                take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
            seed = run.config["config"]["run"]["seed"]
        taken = {}
        for partition, indices in seen:
            taken.setdefault(partition, []).extend(indices)
        self.assertEqual(sum(map(len, taken.values())), 12)
        for partition, indices in taken.items():
            order = iter(PartitionSampler(40, int(seed), partition, 4, 0))
            self.assertEqual(indices, [next(order) for _ in indices])

    def test_a_single_part_has_the_order_of_the_run(self):
        """A worker in C++ would read the same samples. A loader that has no parts keeps its order."""
        hub = self.coordinator(rounds=4, steps=2, data={"mode": "shared", "partitions": 1})
        model, optimizer = model_and_optimizer()
        seen, numbers = [], torch.utils.data.TensorDataset(torch.arange(9.0).view(-1, 1).expand(9, 4), torch.zeros(9, 1))
        for steps in (3, 5):
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                for batch in itertools.islice(run.steps(torch.utils.data.DataLoader(numbers, batch_size=3, shuffle=True)), steps):
                    seen += batch[0][:, 0].int().tolist()
                    take_step(model, optimizer, batch)
                seed = int(run.config["config"]["run"]["seed"])
        self.assertEqual(seen, list(itertools.islice(PartitionSampler(9, seed, 0, 1, 0), 24)))
        self.fresh()
        hub = self.coordinator(rounds=2, steps=2, data={"mode": "shared", "partitions": 1})
        batches, taken = [(torch.full((3, 4), float(number)), torch.zeros(3, 1)) for number in range(4)], []
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for batch in run.steps(batches):
                taken.append(int(batch[0][0, 0]))
                take_step(model, optimizer, batch)
        self.assertEqual(taken, [0, 1, 2, 3])

    def test_the_loops_own_loader_may_be_read_besides(self):
        """A pass of its length, which no position counts: the run's own reading goes on as if nothing had been."""
        base = self.folder
        for workers in (0, 1):
            self.folder = base / str(workers)
            self.folder.mkdir()
            hub = self.coordinator(rounds=16, steps=2, data={"mode": "shared", "partitions": 8})
            model, optimizer = model_and_optimizer()
            seen, besides = [], []
            batches = torch.utils.data.DataLoader(torch.arange(96), batch_size=3, num_workers=workers)
            with atoll.join(hub.data, model, optimizer, **self.options(f"w{workers}")) as run:
                for batch in run.steps(batches):
                    if len(seen) % 36 == 9:
                        besides.append(sum(len(other) for other in batches))
                    seen += batch.tolist()
                    take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
            self.assertEqual(besides, [96, 96, 96])
            self.assertEqual(sorted(seen), list(range(96)))

    def test_a_loop_over_a_loader_that_follows_the_run(self):
        """Every round has another part. One pass of the run reads each sample once."""
        hub = self.coordinator(rounds=16, steps=2, data={"mode": "shared", "partitions": 8})
        model, optimizer = model_and_optimizer()
        seen = []
        batches = torch.utils.data.DataLoader(torch.arange(96), batch_size=3, num_workers=1)
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.assertTrue(run.follow_run(batches))
            while run.running:
                for batch in batches:
                    seen += batch.tolist()
                    take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
                    if not run.step(tokens=3):
                        break
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(sorted(seen), list(range(96)))

    def test_a_round_that_is_larger_than_a_part_is_warned_about_once(self):
        """The sampler spreads it over several passes of the run, and each pass has its own order."""
        for following in (False, True):
            hub = self.coordinator(rounds=4, steps=4, batch=3, workers=2, round={"start_workers": 1, "minimum": 1},
                                   data={"mode": "shared", "partitions": 8})
            model, optimizer = model_and_optimizer()
            batches = torch.utils.data.DataLoader(torch.arange(60), batch_size=3)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                    if following:
                        run.follow_run(batches)
                    for _ in batches if following else run.steps(batches):
                        take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
                        if following and not run.step(tokens=3):
                            break
            found = [str(one.message) for one in caught if "in a round" in str(one.message)]
            self.assertEqual(found, ["a worker reads 12 samples in a round, all from one part of the data, and a part has 7.5 in a pass (60 "
                                     "samples in 8 parts). So a short run reads some samples several times, and others never. A run keeps "
                                     "its number of parts: begin a new run with data.partitions from 2 (run.workers) to 5, or with fewer "
                                     "inner.steps"])
            hub.stop(signal.SIGKILL)
            shutil.rmtree(self.folder)
            self.folder.mkdir()

    def test_the_advice_about_the_number_of_parts_makes_reading_even(self):
        settings = {"run": {"workers": 2}, "inner": {"steps": 10, "batch": 8, "accumulation": 1}}
        self.assertIn("data.partitions from 2 (run.workers) to 10,", uneven_reading(800, 64, settings))
        for partitions in (1, 2, 10):
            self.assertEqual(uneven_reading(800, partitions, settings), "")
        self.assertIn("data.partitions 2, as many as run.workers", uneven_reading(100, 64, settings))
        self.assertEqual(uneven_reading(100, 2, settings), "")  # no number of parts helps
        self.assertEqual(uneven_reading(800, 64, {}), "")
        for partitions, most in ((2, 1), (10, 1), (64, 4)):
            # Five rounds of two workers, who read the parts in turn.
            rounds = [round_ % partitions for round_ in range(10)]
            order, seen, at = SampleOrder(800, 7), [], [0] * partitions
            for partition in rounds:
                seen += [order.at((at[partition] + k) * partitions + partition) for k in range(80)]
                at[partition] += 80
            counts = collections.Counter(seen)
            self.assertEqual(len(counts) == 800, most == 1)
            self.assertGreaterEqual(max(counts.values()), most)

    def test_a_coordinator_that_is_away_for_a_while(self):
        hub = self.coordinator(rounds=4, steps=3)
        over = threading.Event()
        self.addCleanup(over.set)

        def come_back():
            over.wait(2)
            hub.start()
            over.wait()  # the coordinator ends with the thread that started it

        later = threading.Thread(target=come_back)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for count, batch in enumerate(run.steps(loader())):
                take_step(model, optimizer, batch)
                if count == 4:
                    hub.stop()
                    later.start()
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(hub.contributors(), {version: ["w0"] for version in (1, 2, 3, 4)})

    def test_fork_workers_of_a_dataloader_are_harmless(self):
        hub = self.coordinator(rounds=2, steps=4)
        model, optimizer = model_and_optimizer()
        batches = loader(num_workers=2, multiprocessing_context="fork")
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.assertEqual(self.train(run, model, optimizer, batches), 8)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)

    def test_two_contexts_in_one_process(self):
        hub = self.coordinator(rounds=2, steps=2, workers=2)
        ends = {}

        def worker(name):
            model, optimizer = model_and_optimizer(seed=len(name))
            with atoll.join(hub.data, model, optimizer, **self.options(name)) as run:
                self.train(run, model, optimizer)
            ends[name] = run.end_reason

        other = threading.Thread(target=worker, args=("w1",))
        other.start()
        worker("w0")
        other.join()
        self.assertEqual(ends, {"w0": atoll.EndReason.FINISHED, "w1": atoll.EndReason.FINISHED})
        self.assertEqual({version: sorted(names) for version, names in hub.contributors().items()}, {1: ["w0", "w1"], 2: ["w0", "w1"]})

    def test_progress_needs_no_line(self):
        from atoll.progress import Progress, describe
        status = {"phase": "training", "version": 3, "step": 40, "loss": 2.5, "tokens_per_second": 12345.6, "waiting_for": ""}
        self.assertEqual(describe(status), "training, version 3, step 40, loss 2.5000, 12,346 tokens/s")

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        out = Terminal()
        shown = Progress(None, lambda: status, out)
        shown.show()
        shown.say("drained")
        self.assertEqual(out.getvalue(), "\rtraining, version 3, step 40, loss 2.5000, 12,346 tokens/s\natoll: drained\n")
        out = io.StringIO()
        Progress(None, lambda: status, out).show()
        self.assertTrue(out.getvalue().startswith("atoll: training, version 3"))
        out = io.StringIO()
        Progress(False, lambda: status, out).show()
        self.assertEqual(out.getvalue(), "")

        self.assertEqual(describe({"phase": "joining", "version": 0}), "joining")
        self.assertEqual(describe({"phase": "waiting", "waiting_for": "waiting for worker 'w1'"}), "waiting, waiting for worker 'w1'")
        self.assertEqual(describe({"phase": "waiting", "waiting_for": "the coordinator"}), "waiting, waiting for the coordinator")
        self.assertEqual(describe({"phase": "waiting", "waiting_for": "paused by root"}), "waiting, paused by root")

    def test_standard_error_that_cannot_be_written_does_not_end_training(self):
        from atoll.progress import Progress, on_terminal, warn

        class Broken(io.StringIO):
            def write(self, text):
                raise OSError(5, "Input/output error")

        closed = io.StringIO()
        closed.close()
        for out in (Broken(), closed):
            shown = Progress(True, lambda: {"phase": "training"}, out)
            for use in (shown.show, lambda: shown.say("x"), shown.end_line):
                use()
            self.assertFalse(on_terminal(out))
        with unittest.mock.patch("sys.stderr", None):
            Progress(None, lambda: {"phase": "training"}).say("x")
            self.assertFalse(on_terminal())
        with unittest.mock.patch("sys.stderr", closed):
            warn("the warning goes nowhere")

    def test_a_worker_without_a_standard_error(self):
        def worker(kind, stderr):
            return subprocess.run(
                ["bash", "-c", 'exec "$@"' + (" 2>&-" if stderr is None else ""), "bash", sys.executable, "-B", HERE / "small_worker.py",
                 hub.data, "w0", self.folder / f"state-{kind}", self.folder / "journal", "--progress"], stdout=subprocess.PIPE,
                stderr=stderr, stdin=subprocess.DEVNULL, text=True, timeout=60, check=False, env=python_environment())

        read, broken = os.pipe()
        os.close(read)
        with open("/dev/full", "wb") as full, open(broken, "wb", closefd=True) as pipe:
            for kind, stderr in (("closed", None), ("full", full), ("pipe", pipe)):
                hub = self.coordinator(rounds=2, steps=3)
                done = worker(kind, stderr)
                self.assertEqual((done.returncode, done.stdout), (0, "ended: the run is finished\n"), kind)
                hub.stop(signal.SIGKILL)
                shutil.rmtree(self.folder / "coordinator")

    def test_a_terminal_that_goes_away(self):
        """The log of the engine is beside the state directory, whose folder is new, whatever the spelling."""
        hub = self.coordinator(rounds=1000, steps=3)
        for name, state in (("w0", "plain"), ("w1", "slash/"), ("w2", "new/folder/state")):
            terminal, end = pty.openpty()
            with open(self.folder / f"{name}.out", "wb") as out:
                worker = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", HERE / "small_worker.py", hub.data, name, state,
                     self.folder / f"journal-{name}", "--progress", "--pace", "0.02"],
                    cwd=self.folder, stdout=out, stderr=end, stdin=subprocess.DEVNULL, env=python_environment())
            self.processes.append(worker)
            os.close(end)
            shown = b""
            while b"training, version" not in shown:
                shown += os.read(terminal, 4096)
            os.close(terminal)
            journal = self.folder / f"journal-{name}"
            size = journal.stat().st_size
            # A live line is due every 0.25 s: several fail.
            wait_for(lambda: journal.stat().st_size > size + 2000 or worker.poll() is not None, "steps without a terminal")
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.wait(60), 0, shown.decode())
            self.assertIn("ended: drained", (self.folder / f"{name}.out").read_text())
            self.assertIn("joined the run", (self.folder / f"{state.rstrip('/')}.log").read_text())

    def test_steps_after_the_end_warn_and_then_fail(self):
        hub = self.coordinator(rounds=1, steps=1)
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            self.train(run, model, optimizer)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with self.assertRaisesRegex(atoll.FailedPrecondition, "the worker has left the run .*, and the loop goes on"):
                    for _ in range(1000):
                        optimizer.step()
            self.assertIn("steps of the optimizer no longer count", str(caught[0].message))

    def test_the_state_of_the_optimizer_outlives_the_process(self):
        """Two lives have the parameters of one, bit for bit: moments, generators and the place in the data come back."""
        def train_with_dropout(folder, cut):
            hub = atoll_coordinator(folder)
            torch.manual_seed(11)
            model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 1))
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            batches = loader(shuffle=True)
            options = {**self.options(), "state_dir": folder / "state"}
            lives = [cut, None] if cut else [None]
            for end in lives:
                with atoll.join(hub.data, model, optimizer, **options) as run:
                    for count, batch in enumerate(run.steps(batches)):
                        take_step(model, optimizer, batch)
                        if count + 1 == end:
                            break
                if end:  # another process has other objects
                    torch.manual_seed(99)
                    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 1))
                    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
                    batches = loader(shuffle=True)
            published = atoll.pull(hub.data)
            hub.stop(signal.SIGKILL)
            return published

        def atoll_coordinator(folder):
            from fixture import Coordinator
            folder.mkdir()
            hub = Coordinator(folder, config(rounds=6, steps=4)).start()
            self.addCleanup(hub.stop, signal.SIGKILL)
            return hub

        whole = train_with_dropout(self.folder / "whole", None)
        halves = train_with_dropout(self.folder / "halves", 8)
        self.assertEqual(whole.version, halves.version)
        for name in whole:
            self.assertTrue(torch.equal(whole[name], halves[name]), name)


class SignalsTest(unittest.TestCase):
    """The handlers of several runs in one process."""

    def setUp(self):
        self.before = [signal.getsignal(number) for number in SIGNALS]
        self.addCleanup(lambda: [signal.signal(number, kept) for number, kept in zip(SIGNALS, self.before)])

    def joined(self):
        run = DrainOnSignal()
        run.install()
        self.addCleanup(run.remove)
        return run

    def handlers(self):
        return [signal.getsignal(number) for number in SIGNALS]

    def test_the_last_to_close_restores_in_any_order(self):
        for order in itertools.permutations(range(3)):
            runs = [self.joined() for _ in range(3)]
            installed = self.handlers()
            for index in order:
                self.assertEqual(self.handlers(), installed)
                runs[index].remove()
            self.assertEqual(self.handlers(), self.before)

    def test_the_first_signal_drains_all_and_the_second_stops(self):
        one, two = self.joined(), self.joined()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(one.drain and two.drain)
        late = self.joined()
        os.kill(os.getpid(), signal.SIGINT)
        self.assertTrue(late.drain)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)

    def test_a_handler_that_was_installed_over_ours_stays_and_reaches_the_one_before(self):
        reached = []
        signal.signal(signal.SIGTERM, lambda *_: reached.append("before"))
        one = self.joined()
        ours = signal.getsignal(signal.SIGTERM)

        def over(number, frame):
            reached.append("over")
            ours(number, frame)

        signal.signal(signal.SIGTERM, over)
        two = self.joined()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(one.drain and two.drain)
        self.assertEqual(reached, [])
        one.remove()
        two.remove()
        self.assertIs(signal.getsignal(signal.SIGTERM), over)
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(reached, ["over", "before"])

    def test_a_run_of_another_thread_drains_with_the_others(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(self.joined()))
        thread.start()
        thread.join()
        self.assertEqual(self.handlers(), self.before)
        own = self.joined()
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(own.drain and found[0].drain)
        own.remove()
        self.assertEqual(self.handlers(), self.before)


if __name__ == "__main__":
    unittest.main()
