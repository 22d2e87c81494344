"""Loops that would train on the wrong data, or lose a name or a signal, without a word."""
import gc
import inspect
import os
import pathlib
import signal
import unittest
import warnings

import numpy
import torch
from torch.utils.data import DataLoader, RandomSampler, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

import atoll
from fixture import RunTest
from test_run import loader, model_and_optimizer, take_step


def numbered(**more):
    dataset = TensorDataset(torch.arange(40.0)[:, None].expand(40, 4), torch.zeros(40, 1))
    return dataset, lambda sampler: DataLoader(dataset, batch_size=3, sampler=sampler, **more)


class MisuseTest(RunTest):
    def join(self, hub, model, optimizer, name="w0", **more):
        return atoll.join(hub.data, model, optimizer, **self.options(name, **more))

    def test_values_of_an_event_do_not_outlive_its_answer(self):
        def until_write(client):
            while True:
                event = client.next()
                if event.kind == atoll.EventKind.WRITE:
                    return event.pieces[0].values
                client.answer()

        hub = self.coordinator(rounds=2, steps=2)
        client = atoll.Client({"coordinator": hub.data, "state_dir": self.folder / "c0", "name": "c0"}, [atoll.TensorSpec("w", (4,))])
        view = until_write(client)
        self.assertEqual(len(list(view)), 4)
        client.answer()
        for use in (lambda: view[0], lambda: view.__setitem__(0, 7.0)):
            with self.assertRaisesRegex(ValueError, "released"):
                use()
        client.close()
        client = atoll.Client({"coordinator": hub.data, "state_dir": self.folder / "c0", "name": "c0"}, [atoll.TensorSpec("w", (4,))])
        array = numpy.asarray(until_write(client))
        client.answer()
        with self.assertWarnsRegex(UserWarning, "still in use after Client.close"):
            client.close()
        self.assertEqual(array.shape, (4,))
        array.sum()  # ended the interpreter

    def test_a_sampler_that_chooses_samples_is_rejected_over_shared_data(self):
        hub = self.coordinator(rounds=2, steps=2, data={"mode": "shared", "partitions": 2})
        dataset, load = numbered()
        model, optimizer = model_and_optimizer()
        odd = load(Odd(dataset))
        with self.join(hub, model, optimizer) as run:
            for sampler in (SubsetRandomSampler(range(20)), WeightedRandomSampler([1.0] * 40, 40), Short(dataset),
                            RandomSampler(dataset, replacement=True), RandomSampler(dataset, num_samples=20)):
                with self.assertRaisesRegex(atoll.InvalidArgument, f"draws its samples with a {type(sampler).__name__}.*read all 40 samples.*Subset"):
                    next(run.steps(load(sampler)))
                with self.assertRaisesRegex(atoll.InvalidArgument, type(sampler).__name__):
                    run.follow_run(load(sampler))
            with self.assertWarnsRegex(UserWarning, "draws its samples with a Odd"):
                next(run.steps(odd))
            seen = []
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for batch in run.steps(DataLoader(Subset(dataset, range(20)), batch_size=3, sampler=RandomSampler(range(20)))):
                    seen += batch[0][:, 0].tolist()
                    take_step(model, optimizer, batch)
        self.assertFalse([warning for warning in said if "draws its samples" in str(warning.message)])
        self.assertTrue(seen)
        self.assertLess(max(seen), 20)

    @unittest.skipUnless("in_order" in inspect.signature(DataLoader).parameters, "in_order is newer")
    def test_batches_in_another_order_are_rejected_over_shared_data(self):
        hub = self.coordinator(rounds=2, steps=2, data={"mode": "shared", "partitions": 2})
        dataset, _ = numbered()
        batches = DataLoader(dataset, batch_size=3, num_workers=2, in_order=False)
        with self.join(hub, *model_and_optimizer()) as run:
            for use in (lambda: next(run.steps(batches)), lambda: run.follow_run(batches)):
                with self.assertRaisesRegex(atoll.InvalidArgument, "in_order=False.*give a DataLoader with in_order=True"):
                    use()
            run.stop()

    def test_two_loops_over_steps_at_once_are_an_error(self):
        hub = self.coordinator(rounds=2, steps=4)
        model, optimizer = model_and_optimizer()
        with self.join(hub, model, optimizer) as run:
            with warnings.catch_warnings(), self.assertRaisesRegex(atoll.FailedPrecondition, r"another run.steps\(loader\) has begun since"):
                warnings.simplefilter("ignore")  # a step of two batches is larger than the run's
                for one, _ in zip(run.steps(loader()), run.steps(loader())):
                    take_step(model, optimizer, one)
            for batch in run.steps(loader()):  # one after the other is no error
                take_step(model, optimizer, batch)
                break
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)

    def test_a_second_loader_that_follows_the_run_is_said(self):
        hub = self.coordinator(rounds=2, steps=2, data={"mode": "shared", "partitions": 2})
        _, load = numbered()
        first, second = load(None), load(None)
        model, optimizer = model_and_optimizer()
        with self.join(hub, model, optimizer) as run:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertTrue(run.follow_run(first))
                self.assertTrue(run.follow_run(first))
            with self.assertWarnsRegex(UserWarning, "another loader follows the run from here on"):
                self.assertTrue(run.follow_run(second))
            run.stop()

    def test_a_signal_after_the_end_is_the_callers(self):
        hub = self.coordinator(rounds=1, steps=2)
        model, optimizer = model_and_optimizer()
        got = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with self.join(hub, model, optimizer) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
            os.kill(os.getpid(), signal.SIGTERM)
            with self.assertRaises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual(got, [signal.SIGTERM])

    def test_a_restart_finds_the_state_directory_in_another_folder(self):
        hub = self.coordinator(rounds=4, steps=2)
        model, optimizer = model_and_optimizer()
        here, there = pathlib.Path.cwd(), self.folder / "there"
        there.mkdir()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        steps = 0
        with self.join(hub, model, optimizer, state_dir="state", log_file="w0.log") as run:
            os.chdir(there)
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
                steps += 1
                if steps == 2:
                    hub.ctl("workers", "restart", "w0")
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(list(there.iterdir()), [])

    def test_what_an_open_run_uses_is_not_joined_again(self):
        """As a cell of a notebook that raised, without `with`, and is run again. A run that nobody holds ends."""
        hub = self.coordinator(rounds=50, steps=2)
        model, optimizer = model_and_optimizer()
        run = self.join(hub, model, optimizer)
        with self.assertRaisesRegex(atoll.AlreadyExists, "a run of this process still uses the optimizer, the model, the state directory "
                                    r".*state-w0: call run.close\(\) or run.abandon\(\)"):
            self.join(hub, model, optimizer)
        other, other_optimizer = model_and_optimizer()
        with self.assertRaisesRegex(atoll.AlreadyExists, "still uses the state directory .*state-w0:"):
            self.join(hub, other, other_optimizer)
        with self.assertRaisesRegex(atoll.AlreadyExists, "still uses the model:"):
            self.join(hub, model, torch.optim.SGD(model.parameters(), lr=0.1), name="w1")
        with self.assertWarnsRegex(UserWarning, "a run was dropped without run.close"):
            del run
            gc.collect()
        self.assertNotIn("step", vars(optimizer))
        with self.join(hub, model, optimizer) as run:
            run.stop()
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
            self.join(hub, model, optimizer).abandon()  # the first has left

    def test_a_step_without_gradients_is_said_once(self):
        hub = self.coordinator(rounds=2, steps=2)
        model, optimizer = model_and_optimizer()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with self.join(hub, model, optimizer) as run:
                for _ in run.steps(loader()):
                    optimizer.step()
        self.assertEqual([str(one.message)[:43] for one in said], ["no parameter had a gradient in this step, s"])

    def test_ones_own_learning_rate_is_shown(self):
        hub = self.coordinator(rounds=2, steps=2, learning_rate=0.1)
        model, optimizer = model_and_optimizer()
        with self.join(hub, model, optimizer, learning_rate="mine") as run:
            self.assertEqual(run.learning_rate, 0.5)
            run.stop()

    def test_a_module_called_module_keeps_its_name(self):
        hub = self.coordinator(rounds=1, steps=1)

        class Outer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.module = torch.nn.Linear(4, 1)

            def forward(self, inputs):
                return self.module(inputs)

        model = Outer()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.join(hub, torch.nn.DataParallel(model), optimizer) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        published = atoll.pull(hub.data)
        self.assertEqual(sorted(published), ["module.bias", "module.weight"])
        Outer().load_state_dict(published)


class Odd(torch.utils.data.Sampler):
    """Visits every sample, in an order of its own."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return iter(range(len(self.dataset)))

    def __len__(self):
        return len(self.dataset)


class Short(Odd):
    def __len__(self):
        return 7


if __name__ == "__main__":
    unittest.main()
