"""Training that would be lost, or counted as what it is not, without a word."""
import os
import unittest
import warnings

import numpy
import torch

import atoll
from fixture import RunTest
from test_run import loader, model_and_optimizer, take_step


class GuardTest(RunTest):
    def join(self, hub, model, optimizer=None, name="w0", **more):
        return atoll.join(hub.data, model, optimizer, **self.options(name, **more))

    def test_a_replaced_array_is_an_error(self):
        def replace(weights):
            weights["w"] = weights["w"] + 1

        def remove(weights):
            del weights["w"]

        def add(weights):
            weights["new"] = numpy.zeros(4, numpy.float32)

        for change, text in ((replace, "'w' was replaced by another array after atoll.join.*change it in place"),
                             (remove, "'w' is gone from the dict of arrays"), (add, "'new' is new in the dict of arrays")):
            with self.subTest(change=change.__name__):
                hub = self.coordinator(rounds=2, steps=3)
                weights = {"w": numpy.zeros(4, numpy.float32)}
                changed = False
                with self.assertRaisesRegex(atoll.InvalidArgument, text), self.join(hub, weights) as run:
                    while run.running:
                        if not changed or change is replace:
                            change(weights)
                            changed = True
                        run.step(loss=1.0, tokens=3, samples=3)
                self.assertEqual(hub.head(), 0)
                self.fresh()

    def test_another_view_of_an_array_is_no_replacement(self):
        hub = self.coordinator(rounds=2, steps=3)
        weights = {"w": numpy.zeros(4, numpy.float32)}
        with self.join(hub, weights) as run:
            while run.running:
                weights["w"] += 1
                weights["w"] = weights["w"][:]
                run.step(loss=1.0, tokens=3, samples=3)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertTrue((atoll.pull(hub.data)["w"] > 1).all())

    def test_a_step_within_steps_leaves_the_place_in_the_data(self):
        """Also two for one batch, and with samples. A loop of its own after it counts again."""
        for partitions in (1, 2):
            shared = {"mode": "shared", "partitions": partitions} if partitions > 1 else {"mode": "local"}
            hub = self.coordinator(rounds=8, steps=4, data=shared)
            numbers = torch.arange(300.0).view(-1, 1).expand(300, 4)
            seen = []
            for _ in range(2):
                model, optimizer = model_and_optimizer()
                batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(numbers, torch.zeros(300, 1)), batch_size=3)
                with self.join(hub, model, optimizer) as run:
                    begin, places = run.samples, []
                    for batch in run.steps(batches):
                        places.append(run.samples)
                        if partitions == 1:
                            seen += batch[0][:, 0].int().tolist()
                        take_step(model, optimizer, batch)
                        run.step(tokens=3)
                        take_step(model, optimizer, batch)
                        run.step(tokens=3, samples=3)
                        if len(places) == 4:  # of two rounds
                            break
                    if partitions == 1:
                        self.assertEqual(places, [begin + 3, begin + 6, begin + 9, begin + 12])
                        self.assertEqual(run.samples, begin + 12)
                    else:  # each round has its own part
                        self.assertEqual([later - earlier for earlier, later in ((places[0], places[1]), (places[2], places[3]))], [3, 3])
            if partitions == 1:
                self.assertEqual(seen, list(range(24)))
            with self.join(hub, model, optimizer) as run:
                begin = run.samples
                for batch in run.steps(batches):
                    take_step(model, optimizer, batch)
                    break
                run.step(tokens=3, samples=5)
                self.assertEqual(run.samples, begin + 8)
            self.fresh()

    def test_an_evaluation_that_changes_the_model_is_an_error(self):
        def add(module, _):
            module[0].weight.data.add_(100)
            return 1.0

        def there_and_back(module, _):
            kept = module[0].weight.clone()
            module[0].weight.zero_()
            module[0].weight.copy_(kept)
            return 1.0

        def statistics(module, _):
            module.train()(torch.ones(3, 4))
            return 1.0

        norm = torch.nn.BatchNorm1d(4)
        for evaluate, text in ((add, "changed '0.weight' of the model"), (there_and_back, ""), (statistics, "changed '3.running_mean' and 1 more of")):
            hub = self.coordinator(rounds=3, steps=2)
            model, optimizer = model_and_optimizer()
            if evaluate is statistics:
                model = torch.nn.Sequential(*model[:2], torch.nn.Linear(5, 4), norm, torch.nn.Linear(4, 1))
                optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            try:
                with self.join(hub, model, optimizer, evaluate=evaluate, buffers="mean") as run:
                    for batch in run.steps(loader()):
                        take_step(model, optimizer, batch)
                self.assertEqual(text, "")
            except atoll.FailedPrecondition as failure:
                self.assertTrue(text)
                self.assertRegex(str(failure), text)
            self.fresh()

    def test_an_evaluation_that_changes_an_array_is_an_error(self):
        def evaluate(weights, _):
            weights["w"][0] += 1
            return 1.0

        hub = self.coordinator(rounds=3, steps=2)
        weights = {"w": numpy.zeros(4, numpy.float32)}
        with self.assertRaisesRegex(atoll.FailedPrecondition, "changed 'w' of the model"), self.join(hub, weights, evaluate=evaluate) as run:
            while run.running:
                weights["w"] += 1
                run.step(loss=1.0, tokens=3, samples=3)

    def test_a_step_in_an_evaluation_is_an_error(self):
        hub = self.coordinator(rounds=3, steps=2)
        model, optimizer = model_and_optimizer()

        def evaluate(module, _):
            with torch.enable_grad():
                module(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            return 1.0

        with self.assertRaisesRegex(atoll.FailedPrecondition, r"the evaluation function called optimizer.step\(\)"):
            with self.join(hub, model, optimizer, evaluate=evaluate) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)

    def test_a_list_of_samples_counts_its_length(self):
        for collate, options in ((list, {}), (None, {}), (lambda images: {"of": torch.stack(images), "rest": [torch.zeros(16)]}, {}),
                                 (lambda images: (torch.cat(images), images), {"samples": lambda batch: len(batch[1])})):
            hub = self.coordinator(rounds=2, steps=3, batch=16)
            model, optimizer = model_and_optimizer()
            images = torch.utils.data.DataLoader([torch.zeros(3, 8, 8)] * 40, batch_size=16, collate_fn=collate)
            places = []
            with self.join(hub, model, optimizer) as run:
                for _ in run.steps(images, **options):
                    places.append(run.samples)
                    take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
            self.assertEqual(places[:4], [16, 32, 40, 56])  # a pass has 40
            self.assertEqual(hub.tokens(), 120)
            self.fresh()

    def test_parameters_that_share_memory_are_named(self):
        module = torch.nn.Module()
        whole = torch.zeros(8)
        module.a, module.b = torch.nn.Parameter(whole[:5]), torch.nn.Parameter(whole[3:])
        with self.assertRaisesRegex(atoll.InvalidArgument, "the parameters 'a' and 'b' share memory"):
            atoll.count_parameters(module)
        module.a, module.b = torch.nn.Parameter(whole[:4]), torch.nn.Parameter(whole[4:])  # neighbours, as cuDNN keeps them
        self.assertEqual(atoll.count_parameters(module), 8)
        module.b = module.a  # tied
        self.assertEqual(atoll.count_parameters(module), 4)

    def test_an_expanded_tensor_is_named(self):
        module = torch.nn.Module()
        module.p = torch.nn.Parameter(torch.zeros(1, 3).expand(5, 3))
        with self.assertRaisesRegex(atoll.InvalidArgument, r"the parameter 'p' of shape \[5, 3\] is an expanded tensor.*tensor.clone\(\)"):
            atoll.count_parameters(module)
        module = torch.nn.Linear(3, 1)
        module.register_buffer("b", torch.zeros(1, 3).expand(5, 3))
        with self.assertRaisesRegex(atoll.InvalidArgument, "the buffer 'b'"):
            atoll.count_parameters(module, buffers="mean")

    def test_a_forked_child_joins_with_what_it_inherited(self):
        hub = self.coordinator(rounds=6, steps=2, workers=2, round={"start_workers": 1, "minimum": 1, "deadline_s": 5})
        model, optimizer = model_and_optimizer()
        read, write = os.pipe()
        child = 0
        with self.join(hub, model, optimizer) as run:
            for batch in run.steps(loader()):
                if not child:  # before the first gradient: newer PyTorches compute none in a fork of a process that has computed one
                    child = os.fork()
                    if not child:
                        os.write(write, self.child(hub, model, optimizer, run).encode())
                        os._exit(0)
                    os.close(write)
                    with os.fdopen(read) as out:
                        said = out.read()
                    os.waitpid(child, 0)
                take_step(model, optimizer, batch)
        self.assertEqual(said, "2 steps, loss known: True, DRAINED")
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)

    def child(self, hub, model, optimizer, inherited):
        """What a forked child says of its own run, of two steps."""
        try:
            steps = 0
            for use in (inherited.step, inherited.drain, inherited.status):
                try:
                    return f"{use.__name__} gave {use()}"
                except atoll.FailedPrecondition as failure:
                    if "this process is a fork of the one that joined the run" not in str(failure):
                        return str(failure)
            with self.join(hub, model, optimizer, "w1") as run:
                for batch in run.steps(loader()):
                    known = run.status().get("loss", 0) > 0
                    if steps == 2:
                        run.drain()
                        break
                    take_step(model, optimizer, batch)
                    steps += 1
            return f"{steps} steps, loss known: {known}, {run.end_reason}"
        except BaseException as failure:
            return f"{type(failure).__name__}: {failure}"

    def test_a_step_of_another_optimizer_is_an_error(self):
        hub = self.coordinator(rounds=3, steps=4)
        model, optimizer = model_and_optimizer()
        before = torch.optim.SGD(model.parameters(), lr=0.1)
        for another in (lambda: torch.optim.Adam(model.parameters(), lr=0.1), lambda: before):
            with self.assertRaisesRegex(atoll.FailedPrecondition, r"a step of another optimizer \((Adam|SGD)\) changed the parameters"):
                with self.join(hub, model, optimizer) as run:
                    for count, batch in enumerate(run.steps(loader())):
                        take_step(model, optimizer if count < 2 else another(), batch)
            self.assertEqual(run.version, 0)
        self.assertEqual(hub.head(), 0)
        take_step(model, before, next(iter(loader())))  # after the run it is the caller's matter

    def test_steps_that_belong_to_a_counted_one_are_no_others(self):
        """A wrapper with an optimizer inside, a wrapper around the counted one, and one of other parameters."""
        for around in (False, True):
            hub = self.coordinator(rounds=2, steps=4)
            model, optimizer = model_and_optimizer()
            wrapper = Wrapper(optimizer)
            own = torch.nn.Parameter(torch.zeros(3))
            besides = torch.optim.SGD([own], lr=0.1)
            steps = 0
            with self.join(hub, model, optimizer if around else wrapper) as run:
                for batch in run.steps(loader()):
                    own.sum().backward()
                    besides.step()
                    take_step(model, wrapper, batch)
                    steps += 1
            self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
            self.assertEqual(steps, 8)
            self.assertEqual(wrapper.calls, 8)
            self.fresh()

    def test_parameters_that_change_without_a_step_are_said(self):
        for changes in (True, False):
            hub = self.coordinator(rounds=3, steps=4)
            model, optimizer = model_and_optimizer()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with self.join(hub, model, optimizer) as run:
                    for count, batch in enumerate(run.steps(loader())):
                        if count == 4:
                            break
                        if count < 2:
                            take_step(model, optimizer, batch)
                        with torch.no_grad():
                            if changes or count < 2:  # beside a step they are the loop's
                                model[0].weight.add_(0.1)
            found = [str(one.message)[:43] for one in said if "no step of the optimizer was counted" in str(one.message)]
            self.assertEqual(found, ["parameters have changed in the last 3 batch"] if changes else [])
            self.fresh()

    def test_a_loop_that_ends_at_its_first_batch_has_changed_nothing(self):
        hub = self.coordinator(rounds=3, steps=4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.join(hub, *model_and_optimizer()) as run:
                for _ in run.steps(loader()):
                    break


class Wrapper(torch.optim.Optimizer):
    """As those that look ahead: its step is one of another optimizer over the same parameters."""

    def __init__(self, inner):
        self.inner, self.calls = inner, 0
        super().__init__(inner.param_groups, {})

    def step(self, closure=None):
        self.calls += 1
        self.inner.step()


if __name__ == "__main__":
    unittest.main()
