"""Cases of PyTorch: tied, frozen, adapters, types, wrappers, scalers, several optimizers."""
import copy
import math
import shutil
import time
import unittest
import unittest.mock
import warnings

import numpy
import torch

import atoll
from atoll import batch as batches
from atoll.distributed import Island
from atoll.hooks import OptimizerHook
from atoll.torch_inner import TorchInner
from atoll.torch_model import TorchModel, canonical_name
from fixture import RunTest
from test_run import loader, take_step

NEW = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 0)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.norm(self.embed(ids)))


class Adapter(torch.nn.Module):
    """A frozen layer with a low-rank adapter beside it."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.base = torch.nn.Linear(4, 4).requires_grad_(False)
        self.down = torch.nn.Linear(4, 2, bias=False)
        self.up = torch.nn.Linear(2, 1, bias=False)

    def forward(self, x):
        return self.up(self.down(self.base(x)))


class FakeScaler(torch.cuda.amp.GradScaler):
    """A GradScaler whose inf checks are given, so that steps are skipped without a GPU."""

    def __init__(self, skips):
        super().__init__(enabled=False)
        self.skips = list(skips)

    def step(self, optimizer, *args, **kwargs):
        if self.skips.pop(0):
            return None
        return optimizer.step(*args, **kwargs)


def specs(module):
    return [(spec.name, spec.shape, spec.embedding) for spec in TorchModel(module, Island()).specs]


class NamesTest(unittest.TestCase):
    def test_tied_weights_are_one_and_buffers_stay_local(self):
        self.assertEqual(specs(Tied()), [("embed.weight", (6, 4), True), ("norm.weight", (4,), False), ("norm.bias", (4,), False)])

    def test_wrappers_do_not_show_in_names(self):
        plain = specs(Adapter())
        self.assertEqual(specs(torch.nn.DataParallel(Adapter())), plain)
        if NEW:
            self.assertEqual(specs(torch.compile(Adapter())), plain)
        inner = torch.nn.Module()
        inner.module = torch.nn.Module()
        inner.module._orig_mod = torch.nn.Linear(2, 1)  # a compiled part of the user's own `module`
        self.assertEqual(canonical_name(torch.nn.DataParallel(inner), "module.module._orig_mod.weight"), "module.weight")

    def test_only_trained_parameters_are_exchanged_and_the_base_has_a_fingerprint(self):
        one, same, other = (TorchModel(Adapter(seed), Island()) for seed in (1, 1, 2))
        self.assertEqual([spec.name for spec in one.specs], ["down.weight", "up.weight"])
        self.assertEqual(len(one.fingerprint), 64)
        self.assertEqual(one.fingerprint, same.fingerprint)
        self.assertNotEqual(one.fingerprint, other.fingerprint)
        self.assertEqual(TorchModel(Tied(), Island()).fingerprint, "")

    def test_a_base_that_changes_is_said_once(self):
        module = Adapter(1)
        model = TorchModel(module, Island())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.check_unchanged()
        with torch.no_grad():
            module.base.weight.add_(1)
        with self.assertWarnsRegex(UserWarning, "the frozen parameter 'base.weight' was changed after atoll.join"):
            model.check_unchanged()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.check_unchanged()
            own = TorchModel(Adapter(1), Island(), base_fingerprint="mine")
            with torch.no_grad():
                own._module.base.weight.add_(1)
            own.check_unchanged()

    def test_a_scalar_parameter_is_possible(self):
        module = torch.nn.Module()
        module.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.assertEqual(specs(module), [("scale", (), False)])


class TypesTest(unittest.TestCase):
    def exchanged(self, dtype):
        module = torch.nn.Linear(3, 2, bias=False).to(dtype)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TorchModel(module, Island())
        return module, model, [str(w.message) for w in caught]

    def test_float64_goes_over_the_wire_as_float32(self):
        module, model, caught = self.exchanged(torch.float64)
        model.write(0, memoryview(bytearray(torch.full((6,), 0.1).numpy().tobytes())).cast("f"))
        self.assertTrue(torch.equal(module.weight, torch.full((2, 3), 0.1).double()))
        self.assertEqual(caught, [])

    def test_a_reduced_type_gets_a_master_copy_and_a_warning(self):
        for dtype in (torch.bfloat16, torch.float16):
            module, model, caught = self.exchanged(dtype)
            self.assertIn("the optimizer loses updates", caught[0])
            published = torch.tensor([0.1, 1 / 3, 1e-3, 7.77, -2.2, 123.4])
            model.write(0, memoryview(bytearray(published.numpy().tobytes())).cast("f"))
            out = memoryview(bytearray(24)).cast("f")
            model.read(0, out)
            # Nothing was trained: the pseudo-gradient is exactly zero although the parameters are rounded.
            self.assertTrue(torch.equal(torch.tensor(list(out)), published))
            with torch.no_grad():
                module.weight += 1
            model.read(0, out)
            expected = published + (module.weight.detach().float().flatten() - published.to(dtype).float())
            self.assertTrue(torch.equal(torch.tensor(list(out)), expected))

    def test_unknown_types_are_named(self):
        cases = [(torch.zeros(2, dtype=torch.complex64), "'weight' has the unknown type torch.complex64.*Freeze it .* or convert it"),
                 (torch.eye(2).to_sparse(), "'weight' is sparse .torch.sparse_coo.: only dense parameters")]
        if hasattr(torch, "float8_e4m3fn"):
            cases.append((torch.zeros(2).to(torch.float8_e4m3fn), "'weight' has the unknown type torch.float8_e4m3fn"))
        for value, text in cases:
            module = torch.nn.Module()
            module.weight = torch.nn.Parameter(value)
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                atoll.join("127.0.0.1:1", module, state_dir="not-made")


class GradientsTest(unittest.TestCase):
    def test_large_gradients_are_finite_also_where_their_norm_overflows(self):
        """100 100 gradients of 300 have the norm 94 916, and float16 ends at 65 504."""
        for dtype, width, value in ((torch.float16, 1000, 300.0), (torch.float32, 9, 1e20), (torch.float64, 9, 1e200)):
            for bad in (0, math.inf, -math.inf, math.nan):
                model = torch.nn.Linear(width, 100, dtype=dtype)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
                told = []
                hook = OptimizerHook(optimizer, list(model.parameters()), lambda: None, lambda *step: told.append(step), True, lambda total: total)
                hook.install()
                for parameter in model.parameters():
                    parameter.grad = torch.full_like(parameter, value)
                if bad:
                    model.bias.grad[7] = bad
                before = model.weight.detach().clone()
                optimizer.step()
                hook.remove()
                (stepped, norm, _), = told
                self.assertEqual((stepped, math.isfinite(norm)), (not bad, not bad), (dtype, bad))
                self.assertEqual(torch.equal(before, model.weight), bool(bad))
                if stepped and dtype is not torch.float64:
                    self.assertAlmostEqual(norm / (value * math.sqrt(100 * width + 100)), 1, 5)


class JoinedTest(RunTest):
    def join(self, model, optimizer, rounds=2, steps=3, **options):
        self.coordinator(rounds=rounds, steps=steps)
        return atoll.join(self.hub.data, model, optimizer, **self.options(**options))

    def train(self, model, optimizer):
        with self.join(model, optimizer, rounds=2, steps=2) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)

    def test_tied_weights_and_buffers_in_a_run(self):
        torch.manual_seed(1)
        model = Tied()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        ids = [{"input_ids": torch.randint(0, 6, (3,))} for _ in range(4)]
        with self.join(model, optimizer) as run:
            for batch in run.steps(ids):
                torch.nn.functional.cross_entropy(model(batch["input_ids"]), batch["input_ids"]).backward()
                optimizer.step()
                optimizer.zero_grad()
            self.assertIs(model.head.weight, model.embed.weight)
            self.assertEqual(int(model.norm.num_batches_tracked), 6)
        published = atoll.pull(self.hub.data)
        self.assertEqual(sorted(published), ["embed.weight", "norm.bias", "norm.weight"])

    def test_adapters_only_and_another_base_is_rejected(self):
        model = Adapter(1)
        base = model.base.weight.clone()
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        with self.join(model, optimizer, rounds=3, steps=2) as run:
            for count, batch in enumerate(run.steps(loader())):
                take_step(model, optimizer, batch)
                if count == 1:
                    break
        self.assertTrue(torch.equal(model.base.weight, base))
        other = Adapter(2)
        with self.assertRaisesRegex(atoll.AtollError, "(?i)base"):
            atoll.join(self.hub.data, other, torch.optim.SGD([other.up.weight], lr=0.1), **self.options("w1"))

    def test_a_compiled_model(self):
        if not NEW:
            self.skipTest("torch.compile is newer")
        torch.manual_seed(1)
        inner = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))
        model = torch.compile(inner, backend="eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.join(model, optimizer) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        self.assertEqual(sorted(atoll.pull(self.hub.data)), ["0.bias", "0.weight", "1.bias", "1.weight"])

    def test_steps_that_a_scaler_skips_do_not_count(self):
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = FakeScaler([True, True, False, True, False, False])
        batches_seen = 0
        with self.join(model, optimizer, rounds=1, steps=3) as run:
            for inputs, targets in run.steps(loader()):
                scaler.scale((model(inputs) - targets).square().mean()).backward()
                scaler.step(optimizer)
                optimizer.zero_grad()
                batches_seen += 1
        self.assertEqual(batches_seen, 6)
        self.assertEqual(scaler.skips, [])

    def test_a_real_scaler_on_the_processor(self):
        if not NEW or not hasattr(torch.amp, "GradScaler"):
            self.skipTest("GradScaler on the processor is newer")
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 10)
        stepped = 0
        with self.join(model, optimizer, rounds=1, steps=3) as run:
            for count, (inputs, targets) in enumerate(run.steps(loader())):
                loss = (model(inputs) - targets).square().mean()
                if stepped:
                    self.assertLess(run.status()["loss"], 2.0 ** 9)  # not the scaled one
                scaler.scale(loss * (math.inf if count == 1 else 1)).backward()
                scale = scaler.get_scale()
                scaler.step(optimizer)
                scaler.update()
                stepped += scaler.get_scale() >= scale
                optimizer.zero_grad()
        self.assertEqual((count + 1, stepped), (4, 3))
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(self.hub.tokens(), 9)

    def test_a_loop_that_never_steps_gets_an_error(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(atoll.FailedPrecondition, "no optimizer step in 5 batches .* GradScaler skips every step"):
            with self.join(model, optimizer, rounds=1, steps=3) as run:
                run._max_batches = 5
                for _ in run.steps(loader()):
                    pass

    def test_the_wait_for_a_step_is_bounded_in_time_too(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(atoll.FailedPrecondition, "no optimizer step in .* batches and .* s.*max_seconds_per_step"):
            with self.join(model, optimizer, rounds=1, steps=3, max_seconds_per_step=0.2) as run:
                for _ in run.steps(loader()):
                    time.sleep(0.05)

    def test_several_optimizers(self):
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
        first, second = (torch.optim.AdamW(model[name].parameters(), lr=rate) for name, rate in (("a", 0.1), ("b", 0.2)))
        with self.assertRaisesRegex(atoll.InvalidArgument, "there are 2 optimizers: say whose steps count"):
            self.join(model, [first, second])
        self.hub.stop()
        count = 0
        with atoll.join(self.hub.start().data, model, [first, second], counts=second, **self.options()) as run:
            for inputs, targets in run.steps(loader()):
                first.step()  # before any gradient: does nothing, and does not count
                (model["a"](inputs) + model["b"](inputs) - targets).square().mean().backward()
                first.step()
                second.step()
                first.zero_grad()
                second.zero_grad()
                count += 1
                self.assertEqual(first.param_groups[0]["lr"], 0.1)
        self.assertEqual(count, 6)

    def rates_in_a_run(self, first, second, scheduler=None, tensor=False):
        """The rates of two groups during a step of a run with the rate 0.1, and the warnings."""
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.AdamW([{"params": [model.weight], "lr": torch.tensor(first) if tensor else first},
                                       {"params": [model.bias], "lr": torch.tensor(second) if tensor else second}])
        kept = scheduler(optimizer) if scheduler else None
        if not hasattr(self, "hub"):
            self.coordinator(rounds=100, steps=3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = atoll.join(self.hub.data, model, optimizer, **self.options())
        for batch in run.steps(loader()):
            take_step(model, optimizer, batch)
            rates = tuple(round(float(group["lr"]), 6) for group in optimizer.param_groups)
            break
        run.abandon()
        shutil.rmtree(self.folder / "state-w0")
        del kept
        return rates, [str(warning.message) for warning in caught]

    def test_groups_keep_their_proportions_under_a_warm_up_that_begins_at_0(self):
        schedulers = torch.optim.lr_scheduler

        def warm_up(optimizer):
            return schedulers.LambdaLR(optimizer, lambda step: min(1, step / 10))

        def one_cycle(optimizer):
            return schedulers.OneCycleLR(optimizer, max_lr=[0.5, 0.005], total_steps=100)

        expected = ((0.1, 0.001), [])
        self.assertEqual(self.rates_in_a_run(0.2, 0.002), expected)
        self.assertEqual(self.rates_in_a_run(0.2, 0.002, warm_up), expected)
        self.assertEqual(self.rates_in_a_run(0.2, 0.2, one_cycle), expected)
        if NEW:  # rates as tensors
            self.assertEqual(self.rates_in_a_run(0.2, 0.002, warm_up, tensor=True), expected)

    def test_a_scheduler_that_is_made_after_the_join(self):
        schedulers = torch.optim.lr_scheduler
        cases = (("lambda", lambda optimizer: schedulers.LambdaLR(optimizer, lambda step: 0.5 ** step), [0.2, 0.1, 0.05, 0.025]),
                 ("cycle", lambda optimizer: schedulers.OneCycleLR(optimizer, max_lr=0.5, total_steps=100), None))
        self.coordinator(rounds=100, steps=3)
        for name, make, expected in cases:
            torch.manual_seed(1)
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
            rates = []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with atoll.join(self.hub.data, model, optimizer, learning_rate="mine", **self.options(name)) as run:
                    scheduler = make(optimizer)
                    for count, batch in enumerate(run.steps(loader())):
                        rates.append(optimizer.param_groups[0]["lr"])
                        take_step(model, optimizer, batch)
                        scheduler.step()
                        if count == 3:
                            run.drain()
            self.assertEqual([str(warning.message) for warning in caught], [])  # PyTorch warns of a scheduler that saw no step
            self.assertEqual(run.end_reason, atoll.EndReason.DRAINED)
            self.assertEqual(rates, expected or sorted(set(rates)))
            before = model.weight.detach().clone()
            take_step(model, optimizer, next(iter(loader())))
            self.assertFalse(torch.equal(before, model.weight))

    def test_groups_of_unknown_proportions_warn(self):
        rates, caught = self.rates_in_a_run(0.0, 0.0)
        self.assertEqual(rates, (0.1, 0.1))
        self.assertEqual(len(caught), 1)
        self.assertIn("the 2 parameter groups of the optimizer all have the learning rate 0", caught[0])
        self.assertIn("Give the groups their rates before atoll.join", caught[0])

    def test_gradients_of_other_optimizers_are_checked_too(self):
        """A bad gradient drops one round, whichever optimizer steps first, and whether or not the counted one sees the gradient."""
        self.coordinator(rounds=100, steps=2)
        for name in ("other first", "counted first", "cleared", "closure"):
            torch.manual_seed(1)
            model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
            other, counted = (torch.optim.Adam(model[part].parameters(), lr=0.1) for part in "ab")
            steps_of_other = 0
            with atoll.join(self.hub.data, model, [other, counted], counts=counted, **self.options(name.replace(" ", "-"))) as run:
                begin = run.version
                for count, (inputs, targets) in enumerate(run.steps(loader())):
                    def closure(inputs=inputs, targets=targets, bad=count == 2):
                        loss = (model["a"](inputs) + model["b"](inputs) - targets).square().mean()
                        loss.backward()
                        if bad:
                            model["a"].weight.grad[0, 1] = math.nan
                        return loss

                    if name != "closure":
                        closure()
                    if name == "counted first":
                        counted.step()
                    before = model["a"].weight.detach().clone()
                    other.step(closure) if name == "closure" else other.step()
                    steps_of_other += not torch.equal(before, model["a"].weight)
                    if name in ("cleared", "closure"):
                        other.zero_grad()
                    if name != "counted first":
                        counted.step()
                    other.zero_grad()
                    counted.zero_grad()
                    for kept in other.state.values():
                        self.assertTrue(torch.isfinite(kept["exp_avg"]).all(), (name, count))
                    if count == 2:
                        self.assertEqual(run.version, begin + 1)
                    if count == 6:
                        break
            # Rounds of 2 steps: steps 0 and 1, then step 2, which is dropped, 3 and 4, 5 and 6.
            self.assertEqual((steps_of_other, run.version), (6, begin + 3), name)

    def test_another_optimizer_may_call_its_closure_several_times(self):
        class Twice(torch.optim.SGD):
            def step(self, closure):
                closure()
                super().step()
                self.zero_grad()
                closure()
                super().step()

        model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
        other, counted = Twice(model["a"].parameters(), lr=0.1), torch.optim.SGD(model["b"].parameters(), lr=0.1)
        calls = []
        with self.join(model, [other, counted], rounds=1, steps=3, counts=counted) as run:
            for inputs, targets in run.steps(loader()):
                def closure(inputs=inputs, targets=targets):
                    calls.append((model["a"](inputs) + model["b"](inputs) - targets).square().mean().backward())
                other.step(closure)
                counted.step()
                counted.zero_grad()
        self.assertEqual(len(calls), 6)

    def test_a_closure(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with self.join(model, optimizer, rounds=1, steps=3) as run:
            for inputs, targets in run.steps(loader()):
                def closure(inputs=inputs, targets=targets):
                    optimizer.zero_grad()
                    loss = (model(inputs) - targets).square().mean()
                    loss.backward()
                    return loss
                optimizer.step(closure)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)

    def test_a_closure_that_is_evaluated_at_another_point(self):
        """Sharpness-aware minimisation: the gradients of the step are those at a perturbed point. Its loss is not the model's."""
        class Sharp(torch.optim.SGD):
            @torch.no_grad()
            def step(self, closure):
                moved = [(p, p.grad / 10) for group in self.param_groups for p in group["params"]]
                for p, by in moved:
                    p.add_(by)
                self.zero_grad()
                with torch.enable_grad():
                    closure()
                for p, by in moved:
                    p.sub_(by)
                super().step()

        def train(batches, model, optimizer):
            for inputs, targets in batches:
                def closure(inputs=inputs, targets=targets):
                    loss = (model(inputs) - targets).square().mean()
                    loss.backward()
                    return loss
                losses.append(float(closure()))
                optimizer.step(closure)
                optimizer.zero_grad()

        models = [torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)]
        models[1].load_state_dict(models[0].state_dict())
        optimizers = [Sharp(model.parameters(), lr=0.1) for model in models]
        losses, batches = [], [(torch.ones(3, 4) * i, torch.zeros(3, 1)) for i in (1, 2, 3)]
        train(batches, models[0], optimizers[0])
        alone, losses = losses, []
        with self.join(models[1], optimizers[1], rounds=1, steps=3, learning_rate="mine") as run:
            train(run.steps(batches), models[1], optimizers[1])
        self.assertEqual(losses, alone)
        self.assertNotEqual(losses[0], losses[2])
        self.assertAlmostEqual(run._last["loss"], alone[-1], places=5)

    def test_a_closure_adds_to_the_losses_that_were_accumulated(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        seen = []
        with self.join(model, optimizer, rounds=2, steps=2, learning_rate="mine") as run:
            for index, (inputs, targets) in enumerate(run.steps([(torch.ones(3, 4), torch.zeros(3, 1))])):
                def closure(inputs=inputs, targets=targets):
                    loss = (model(inputs) - targets).square().mean() / 2
                    loss.backward()
                    return loss
                if run._last:
                    seen.append(run._last["loss"])
                if index % 2 == 0:
                    once = 2 * float(closure())
                else:
                    optimizer.step(closure)
                    optimizer.zero_grad()
        self.assertGreater(len(seen), 2)
        for loss in seen:
            self.assertAlmostEqual(loss, once, places=5)

    def test_a_closure_whose_gradients_are_not_finite(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.join(model, optimizer, rounds=2, steps=2) as run:
            for index, (inputs, targets) in enumerate(run.steps(loader())):
                before = model.weight.detach().clone()

                def closure(bad=float("nan") if index == 1 else 1.0, inputs=inputs, targets=targets):
                    optimizer.zero_grad()
                    loss = (model(inputs) - targets).square().mean() * bad
                    loss.backward()
                    return loss
                optimizer.step(closure)
                if index == 1:
                    torch.testing.assert_close(model.weight.detach(), before)
        self.assertTrue(torch.isfinite(model.weight).all())
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)

    def test_a_group_that_is_added_keeps_its_proportion(self):
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
        optimizer = torch.optim.SGD(model["a"].parameters(), lr=0.5)
        with self.join(model, optimizer, rounds=1, steps=3) as run:
            for index, (inputs, targets) in enumerate(run.steps(loader())):
                if index == 1:
                    optimizer.add_param_group({"params": list(model["b"].parameters()), "lr": 0.05})
                ((model["a"](inputs) + model["b"](inputs)) - targets).square().mean().backward()
                optimizer.step()
                if index > 0:
                    rates = [group["lr"] for group in optimizer.param_groups]
                    self.assertAlmostEqual(rates[1], rates[0] / 10)
                optimizer.zero_grad()

    def test_an_optimizer_with_a_copy_of_the_parameters_warns(self):
        class Master(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {"lr": 0.1})

            @torch.no_grad()
            def step(self):
                for p in (p for group in self.param_groups for p in group["params"]):
                    master = self.state[p].setdefault("master", p.detach().clone())
                    master.add_(p.grad, alpha=-0.01)
                    p.copy_(master)

        Master.__module__ = "somewhere"
        model = torch.nn.Linear(4, 1)
        optimizer = Master(model.parameters())
        with self.assertWarnsRegex(UserWarning, r"the state 'master' of the optimizer \(Master\) equals the parameters"):
            self.train(model, optimizer)

    def test_an_average_of_the_parameters_is_no_copy_that_matters(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.ASGD(model.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            self.train(model, optimizer)

    def test_an_optimizer_without_a_rate(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for rate in (lambda group: group.update(lr=None), lambda group: group.pop("lr")):
            rate(optimizer.param_groups[0])
            with self.assertRaisesRegex(atoll.InvalidArgument, "no learning rate .* learning_rate='mine'"):
                atoll.join("127.0.0.1:1", model, optimizer, **self.options())

    def test_two_steps_for_one_batch_are_an_error(self):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(atoll.FailedPrecondition, "called twice for one step"):
            with self.join(model, optimizer) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)
                    take_step(model, optimizer, batch)

    def life(self, optimizer, steps=3, **options):
        """Trains for some steps, drains, and returns the warnings. The model and the optimizer are self.model and `optimizer`."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with atoll.join(self.hub.data, self.model, optimizer, **self.options(**options)) as run:
                self.generator = torch.get_rng_state()
                self.joined_with = {key: {name: copy.deepcopy(value) for name, value in kept.items()} for key, kept in optimizer.state.items()}
                for count, batch in enumerate(run.steps(loader())):
                    take_step(self.model, optimizer, batch)
                    if count + 1 == steps:
                        run.drain()
        self.assertEqual(run.end_reason, atoll.EndReason.DRAINED)
        return [str(warning.message) for warning in caught]

    def two_layers(self, rows=6):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, rows, bias=False), torch.nn.Linear(rows, 1, bias=False))
        return self.model[0].weight, self.model[1].weight

    def test_a_state_of_other_groups_or_another_order_leads_to_a_cold_start(self):
        self.coordinator(rounds=100, steps=3)
        first, second = self.two_layers(4)
        self.assertEqual(self.life(torch.optim.AdamW([first, second], lr=0.1)), [])
        for groups in ([{"params": [first]}, {"params": [second], "weight_decay": 0}], [second, first]):
            other = torch.optim.AdamW(groups, lr=0.1)
            caught = self.life(other)
            self.assertIn("the kept state is not used, and the worker starts with a new optimizer: the saved state is of", caught[0])
            self.assertIn("groups, shapes or order of the parameters differ", caught[0])
            self.assertNotIn("layout", caught[0])
            self.assertEqual(self.joined_with, {})
        self.assertIn("joins cold", (self.folder / "w0.log").read_text())
        self.assertEqual(self.life(other), [])
        self.assertEqual(float(self.joined_with[first]["step"]), 3)

    def test_parameters_of_one_shape_in_another_order_do_not_change_their_moments(self):
        self.coordinator(rounds=100, steps=3)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 1))
        parameters = list(self.model.parameters())
        self.life(torch.optim.AdamW(parameters, lr=0.1))
        self.assertIn("order of the parameters differ", self.life(torch.optim.AdamW([parameters[1], parameters[0], *parameters[2:]], lr=0.1))[0])

    def test_a_state_without_the_layout_in_its_kind_is_taken_up_when_it_fits(self):
        """As older packages wrote it."""
        self.coordinator(rounds=100, steps=3)
        first, second = self.two_layers()
        old_kind = property(lambda inner: inner._kind_without_layout)
        cases = (("fits", [first, second], ""),
                 ("order", [second, first], "exp_avg of parameter 0 of AdamW has the shape [6, 4] in the saved state, and this worker's "
                  "parameter has [1, 6]"),
                 ("groups", [{"params": [first]}, {"params": [second]}], "has groups of [2] parameters, and this worker has groups of [1, 1]"))
        for name, parameters, text in cases:
            with unittest.mock.patch.object(TorchInner, "kind", old_kind):
                self.life(torch.optim.AdamW([first, second], lr=0.1), name=name)
            caught = self.life(torch.optim.AdamW(parameters, lr=0.1), name=name)
            if text:
                self.assertIn(text, caught[0])
                self.assertEqual(self.joined_with, {})
            else:
                self.assertEqual(caught, [])
                self.assertEqual(float(self.joined_with[first]["step"]), 3)

    def test_a_state_that_does_not_load_changes_nothing(self):
        class Picky:
            def __init__(self, value, size):
                self.value, self.weights = value, torch.nn.Linear(size, 1)

            def state_dict(self):
                return {"value": self.value, **self.weights.state_dict()}

            def load_state_dict(self, kept):
                kept = dict(kept)
                self.value = kept.pop("value")
                self.weights.load_state_dict(kept)

        self.coordinator(rounds=100, steps=3)
        weights = self.two_layers()
        self.life(torch.optim.AdamW(weights, lr=0.1), also_save={"first": Picky(1, 2), "second": Picky(1, 2)})
        fits, other = Picky(7, 2), Picky(7, 3)
        before = fits.weights.weight.clone()
        generator = torch.get_rng_state()
        optimizer = torch.optim.AdamW(weights, lr=0.1)
        caught = self.life(optimizer, also_save={"first": fits, "second": other})
        self.assertRegex(caught[0], r"(?s)the worker starts with a new optimizer: it does not load: RuntimeError: .*size mismatch")
        self.assertEqual((self.joined_with, fits.value, other.value), ({}, 7, 7))
        self.assertTrue(torch.equal(fits.weights.weight, before))
        self.assertTrue(torch.equal(self.generator, generator))

    def test_a_state_of_another_scheduler_leads_to_a_cold_start(self):
        self.coordinator(rounds=100, steps=3)
        weights = self.two_layers()
        schedulers = torch.optim.lr_scheduler
        for make, words in ((lambda o: schedulers.CosineAnnealingLR(o, 50), None), (lambda o: schedulers.CosineAnnealingLR(o, 70), None),
                            (lambda o: schedulers.StepLR(o, 10), "also_save\\['s'\\] is a StepLR, and the saved state is of a CosineAnnealingLR")):
            optimizer = torch.optim.AdamW(weights, lr=0.1)
            caught = self.life(optimizer, learning_rate="mine", also_save={"s": make(optimizer)})
            found = [text for text in caught if "also_save" in text]
            if words is None:
                self.assertEqual(found, [])
            else:
                self.assertRegex(found[0], words)

    def test_settings_that_the_kept_state_replaces_are_said(self):
        self.coordinator(rounds=100, steps=3)
        weights = self.two_layers()
        self.assertEqual(self.life(torch.optim.AdamW(weights, lr=0.1, weight_decay=0.5, betas=(0.9, 0.99))), [])
        self.assertEqual(self.life(torch.optim.AdamW(weights, lr=0.3, weight_decay=0.5, betas=(0.9, 0.99))), [])  # the run sets the rate
        optimizer = torch.optim.AdamW(weights, lr=0.1, weight_decay=0.01, betas=(0.9, 0.95))
        caught = self.life(optimizer)
        self.assertEqual(len(caught), 1)
        self.assertIn("the kept state replaces settings of the optimizer in your code: betas (0.9, 0.99) instead of (0.9, 0.95), weight_decay "
                      "0.5 instead of 0.01", caught[0])
        self.assertEqual(optimizer.param_groups[0]["weight_decay"], 0.5)

    def warns_of_steps(self, size, warning):
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertWarnsRegex(UserWarning, warning):
            with self.join(model, optimizer, rounds=1, steps=2) as run:
                for batch in run.steps(loader(batch_size=size)):
                    self.assertEqual(batches.count(batch), (size, size))
                    take_step(model, optimizer, batch)

    def test_steps_larger_than_the_runs_warn(self):
        self.warns_of_steps(6, "used 6 samples, and the run counts at most 3 for a step: give each step 3 samples")

    def test_steps_much_smaller_than_the_runs_warn(self):
        self.warns_of_steps(1, "used 1 samples, and the run plans 3 for a step. .* takes 3 times the rounds of run.rounds")

    def test_a_step_without_tokens_counts_as_one(self):
        self.coordinator(rounds=1, steps=2)
        arrays = {"w": numpy.zeros(2, numpy.float32)}
        with self.assertWarnsRegex(UserWarning, "used 1 samples, and the run plans 3 for a step. .* takes 3 times the rounds"):
            with atoll.join(self.hub.data, arrays, **self.options()) as run:
                while run.running:
                    run.step()


if __name__ == "__main__":
    unittest.main()
