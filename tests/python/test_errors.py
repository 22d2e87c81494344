"""Each message of bad input: what failed, on what, and what to do."""
import contextlib
import os
import pathlib
import shutil
import threading
import unittest
from unittest import mock

import numpy
import torch

import atoll
from atoll import _library
from atoll.client import Client, EventKind, Outcome, TensorSpec
from fixture import PATIENCE_S, RunTest, config, engine_of, wait_for
from test_run import loader, model_and_optimizer, take_step


def running(process):
    """Whether it runs, and is no zombie."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until_read(client):
    """The first event that asks for values; those before it are answered."""
    event = client.next()
    while event.kind is not EventKind.READ:
        client.answer()
        event = client.next()
    return event


class ErrorsTest(RunTest):
    def join(self, address, model=None, optimizer=None, name="w0", **more):
        if model is None:
            model, optimizer = model_and_optimizer()
        return atoll.join(address, model, optimizer, **self.options(name, **more))

    def test_another_model_names_the_tensor(self):
        hub = self.coordinator(rounds=3, workers=2)
        self.join_and_leave(hub)
        for layer, text in ((torch.nn.Linear(4, 6), r"'0.weight'.*\[6, 4\].*\[5, 4\]"),
                            (torch.nn.Linear(4, 5, bias=False), r"'0.bias'|'2.weight'")):
            model = torch.nn.Sequential(layer, torch.nn.Tanh(), torch.nn.Linear(layer.out_features, 1))
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                self.join(hub.data, model, torch.optim.SGD(model.parameters(), lr=0.1), "w1")
            # The operator, who waits for this worker, learns it too.
            [refused] = hub.status()["refused_joins"]
            self.assertEqual((refused["worker"], refused["reason"]), ("w1", "MANIFEST_MISMATCH"))
            self.assertRegex(refused["message"], text)
        self.assertRegex(hub.ctl("events"), "JOIN_REFUSED .* the model of worker 'w1' is not the run's: ")

    def test_a_model_that_changed_between_two_lives_of_a_worker(self):
        hub = self.coordinator(rounds=3)
        self.join_and_leave(hub)
        head = hub.head()
        changed = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
        with self.assertRaisesRegex(atoll.InvalidArgument, r"the model is not that of the run: tensor '0.weight' has shape \[6, 4\], and \[5, 4\] in the run"):
            self.join(hub.data, changed, torch.optim.SGD(changed.parameters(), lr=0.1), name="seeder")
        self.assertEqual(hub.head(), head)
        with self.join(hub.data, *model_and_optimizer(), name="seeder") as run:  # what it kept is as it was
            run.stop()

    def join_and_leave(self, hub):
        """The id of the run."""
        model, optimizer = model_and_optimizer()
        with self.join(hub.data, model, optimizer, name="seeder") as run:
            run.drain()
            run_id = run.config["run_id"]
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        return run_id

    def test_a_parameter_that_changes_its_shape(self):
        hub = self.coordinator(rounds=3, steps=1)
        model, optimizer = model_and_optimizer()
        with self.assertRaisesRegex(atoll.FailedPrecondition, r"the parameter '2.bias' has the shape \[2\], but had \[1\] when the worker joined"):
            with self.join(hub.data, model, optimizer) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)
                    model[2].bias.data = torch.zeros(2)
        self.assertEqual(hub.head(), 0)

    def test_a_parameter_that_is_replaced(self):
        hub = self.coordinator(rounds=3, steps=2)
        model, optimizer = model_and_optimizer()
        with self.assertRaisesRegex(atoll.InvalidArgument, "the parameter '0.bias' was replaced by another tensor"):
            with self.join(hub.data, model, optimizer) as run:
                for batch in run.steps(loader()):
                    take_step(model, optimizer, batch)
                    model[0].bias = torch.nn.Parameter(torch.zeros(5))

    def test_a_model_without_memory(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 1, device="meta"))
        with self.assertRaisesRegex(atoll.InvalidArgument, "the parameter '0.weight' is on the device 'meta', which has no memory"):
            self.join("127.0.0.1:1", model, None)

    def test_a_lazy_model(self):
        with self.assertRaisesRegex(atoll.InvalidArgument, "the parameter 'weight' has no shape yet"):
            self.join("127.0.0.1:1", torch.nn.LazyLinear(3), None)

    def test_a_model_without_parameters(self):
        with self.assertRaisesRegex(atoll.InvalidArgument, "no parameter to exchange"):
            self.join("127.0.0.1:1", torch.nn.Tanh(), None)

    def test_a_name_that_is_taken(self):
        hub = self.coordinator(rounds=3, workers=2)
        model, optimizer = model_and_optimizer()
        with self.join(hub.data, model, optimizer, "w0") as run:
            with self.assertRaisesRegex(atoll.AlreadyExists, "another live worker has the name 'w0'; choose another name"):
                other, its = model_and_optimizer()
                atoll.join(hub.data, other, its, **{**self.options("w0"), "state_dir": self.folder / "other"})
            run.stop()

    def test_a_state_directory_in_use(self):
        hub = self.coordinator(rounds=3, workers=2)
        model, optimizer = model_and_optimizer()
        with self.join(hub.data, model, optimizer) as run:
            with self.assertRaisesRegex(atoll.AlreadyExists, "state-w0"):
                self.join(hub.data, *model_and_optimizer())
            run.stop()

    def test_a_state_directory_of_another_run(self):
        hub = self.coordinator(rounds=3)
        first_run = self.join_and_leave(hub)
        hub.stop()
        folder = self.folder / "second"
        folder.mkdir()
        from fixture import Coordinator
        second = Coordinator(folder, config(rounds=3)).start()
        self.addCleanup(second.stop, 9)
        # Joining would replace what is kept.
        with self.assertRaisesRegex(atoll.FailedPrecondition, f"state-seeder/progress keeps the state of run {first_run}, and this coordinator "
                                    "serves run .* \\('python-test'\\).*give option expect-run python-test") as caught:
            self.join(second.data, *model_and_optimizer(), name="seeder")
        self.assertNotIn(f"serves run {first_run}", str(caught.exception))
        self.assertEqual(second.status().get("workers", []), [])
        # A run that it does not expect is none that it joins, whatever is kept.
        with self.assertRaisesRegex(atoll.AtollError, first_run):
            self.join(second.data, *model_and_optimizer(), name="seeder", expect_run=first_run)
        with self.join(second.data, *model_and_optimizer(), name="seeder", expect_run="python-test") as run:
            self.assertNotEqual(run.config["run_id"], first_run)
            run.stop()

    def test_a_wrong_token(self):
        tokens = self.folder / "tokens"
        tokens.mkdir()
        right, wrong = "r" * 43, "w" * 43
        (tokens / "worker").write_text(right + "\n")
        (tokens / "wrong").write_text(wrong + "\n")
        for path in tokens.iterdir():
            path.chmod(0o600)
        hub = self.coordinator(config(rounds=1), "--require-tokens", "--worker-token-file", str(tokens / "worker"))
        with self.assertRaisesRegex(atoll.AtollError, "(?i)token") as caught:
            self.join(hub.data, *model_and_optimizer(), token_file=tokens / "wrong")
        self.assertIn(type(caught.exception), (atoll.Unauthenticated, atoll.PermissionDenied))

    def test_an_evaluation_that_is_no_function(self):
        with self.assertRaisesRegex(atoll.InvalidArgument, "evaluate must be a function .* and is float 0.5"):
            self.join("127.0.0.1:1", evaluate=0.5)

    def test_paths_that_are_none(self):
        for options, text in (({"state_dir": None}, "state_dir is None: give a path as text"), ({"state_dir": 3}, "state_dir is 3: give a path"),
                              ({"state_dir": b"/state"}, "state_dir is b'/state': give a path as text"),
                              ({"log_file": b"log"}, "log_file is b'log': give a path as text"),
                              ({"state_dir": "a\0b"}, r"state_dir is 'a\\x00b': a path cannot have a NUL character"),
                              ({"tls_ca": "a\0b"}, r"tls_ca is 'a\\x00b': a path cannot have a NUL character"),
                              ({"state_dir": "\ud800"}, r"state_dir is '\\ud800': surrogates not allowed; give a path of valid text")):
            model, optimizer = model_and_optimizer()
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                atoll.join("127.0.0.1:1", model, optimizer, **{**self.options(), **options})

    def test_a_process_group_that_has_ended(self):
        torch.distributed.init_process_group("gloo", init_method=f"file://{self.folder}/ranks", rank=0, world_size=1)
        group = torch.distributed.group.WORLD
        torch.distributed.destroy_process_group()
        with self.assertRaisesRegex(atoll.InvalidArgument, "island is a process group, but torch.distributed has ended"):
            self.join("127.0.0.1:1", *model_and_optimizer(), island=group)

    def test_an_unknown_option(self):
        with self.assertRaisesRegex(atoll.InvalidArgument, "tokenfile"):
            self.join("127.0.0.1:1", *model_and_optimizer(), tokenfile="x")

    def test_texts_that_the_library_cannot_take(self):
        surrogate = "cannot be encoded in UTF-8: character 1 is half of a surrogate pair"
        for options, text in (({"name": "a\0b"}, r"the option name, 'a\\x00b', contains a zero byte"),
                              ({"name": "a\udc80b"}, rf"the option name, 'a\\udc80b', {surrogate}"),
                              ({"to\0ken": "x"}, r"the name of an option, 'to\\x00ken', contains a zero byte"),
                              ({"t\udc80": "x"}, rf"the name of an option, 't\\udc80', {surrogate}")):
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                self.join("127.0.0.1:1", *model_and_optimizer(), **{"name": "w0", "state_dir": self.folder / "state", "log_file": self.folder / "log", **options})
        for name, text in (("w\0", r"the name of a tensor, 'w\\x00', contains a zero byte"),
                           ("w\udc80", rf"the name of a tensor, 'w\\udc80', {surrogate}"),
                           ("w\u00e9", r"the name of tensor 0, 'w\\xc3\\xa9', has a space or a character outside printable ASCII")):
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                Client({"coordinator": "127.0.0.1:1", **self.client_options()}, [TensorSpec(name, (2,))])

    def test_a_reason_with_any_character_is_passed_on(self):
        hub = self.coordinator(rounds=3)
        client = Client({"coordinator": hub.data, **self.client_options()}, [TensorSpec("w", (2,))])
        self.addCleanup(client.close)
        self.assertIs(client.next().kind, EventKind.JOINED)
        client.answer(Outcome.FAILED, message="odd: \udc80 \0 \u00e9 end")
        event = client.next()
        self.assertIs(event.kind, EventKind.END)
        self.assertIn("odd: \\udc80 \\x00 \u00e9 end", event.text)

    def test_views_end_with_the_answer(self):
        """The memory of a view was freed by close(), and reading it crashed the interpreter."""
        for closes in (False, True):
            hub = self.coordinator(rounds=3, steps=1)
            client = Client({"coordinator": hub.data, **self.client_options()}, [TensorSpec("w", (4,))])
            self.addCleanup(client.close)
            event = until_read(client)
            view = event.pieces[0].values
            with self.assertRaises(atoll.InvalidArgument):
                client.answer(tokens=-1)
            view[:] = memoryview(numpy.arange(4, dtype=numpy.float32))  # the event is not answered
            client.close() if closes else client.answer()
            for use in (lambda view=view: view[0], lambda view=view: view.__setitem__(0, 7.0), lambda view=view: list(view)):
                with self.assertRaisesRegex(ValueError, "released"):
                    use()
            client.close()
            self.fresh()

    def test_arrays_of_views_outlive_the_client(self):
        hub = self.coordinator(rounds=3, steps=1)
        client = Client({"coordinator": hub.data, **self.client_options()}, [TensorSpec("w", (4,))])
        self.addCleanup(client.close)
        event = until_read(client)
        array, part = numpy.asarray(event.pieces[0].values), event.pieces[0].values[2:]
        array[:] = 5
        engine = engine_of(os.getpid())
        closed = []
        with mock.patch.object(_library.Library, "close", lambda library, handle, close=_library.Library.close: closed.append(
                close(library, handle))):
            with self.assertWarnsRegex(UserWarning, "still in use after Client.close"):
                client.close()
            wait_for(lambda: not running(engine), "the engine to end")
            self.assertEqual((array.tolist(), part[0], closed), ([5.0, 5.0, 5.0, 5.0], 5.0, []))
            del array, event
            self.assertEqual((part[1], closed), (5.0, []))
            del part
            self.assertEqual(closed, [None])

    def client_options(self):
        return {"state_dir": self.folder / "state", "name": "w0", "log_file": self.folder / "log"}

    def test_calls_of_other_threads_while_the_client_closes(self):
        """Each of them has found the client open, and comes to the library after the end."""
        client = Client({"coordinator": "127.0.0.1:1", **self.client_options()}, [TensorSpec("w", (2,))])
        known = client.status()
        found, closed, results = threading.Semaphore(0), threading.Event(), {}

        def late(call):
            def wait_and_call(library, handle):
                found.release()
                closed.wait()
                return call(library, handle)
            return wait_and_call

        def use(call):
            try:
                results[call.__name__] = call()
            except atoll.FailedPrecondition as failure:
                results[call.__name__] = str(failure)

        calls = (client.status, client.drain, client.stop)
        with contextlib.ExitStack() as patches:
            for name in ("status_json", "drain", "stop"):
                patches.enter_context(mock.patch.object(_library.Library, name, late(getattr(_library.Library, name))))
            threads = [threading.Thread(target=use, args=(call,), daemon=True) for call in calls]
            for thread in threads:
                thread.start()
                self.assertTrue(found.acquire(timeout=PATIENCE_S))
            client.close()
            closed.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        self.assertEqual(sorted(results), ["drain", "status", "stop"])
        self.assertEqual(results["status"], known)
        for name in ("drain", "stop"):
            self.assertIn("this client is closed", results[name])
        self.assertEqual(client.status(), known)

    def test_use_after_the_end(self):
        hub = self.coordinator(rounds=1, steps=1)
        model, optimizer = model_and_optimizer()
        with self.join(hub.data, model, optimizer) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        for use in (run.status, run.step, run.drain, run.stop, lambda: next(run.steps(loader()))):
            with self.assertRaisesRegex(atoll.FailedPrecondition, "the context of this run has ended: call atoll.join again"):
                use()
        run.close()  # again is no error

    def test_arrays_of_another_type(self):
        for array, text in ((numpy.zeros(3), "has the unknown type float64"), (numpy.zeros((4, 4), numpy.float32)[:, 1:], "must be writable"),
                            ([1.0], "is a list")):
            with self.assertRaisesRegex(atoll.InvalidArgument, f"the parameter 'w' {text}"):
                self.join("127.0.0.1:1", {"w": array}, None)

    def test_names_that_would_arrive_as_others(self):
        for name, text in (("a\0b", r"'a\\x00b' contains a zero byte: rename it"), ("\ud800", r"'\\ud800' cannot be written in UTF-8"),
                           (3, "must be text, and 3 is a int")):
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                self.join("127.0.0.1:1", {name: numpy.zeros(2, numpy.float32)}, None)

    def test_an_empty_option_is_not_an_absent_one(self):
        """The value of an unset variable must not mean plain text, no token, or any run."""
        for name in ("name", "tls_ca", "tls_cert", "tls_key", "token_file", "expect_run", "tls-ca"):
            for use in (lambda **given: self.join("127.0.0.1:1", *model_and_optimizer(), **given),
                        lambda **given: atoll.pull("127.0.0.1:1", **given)):
                with self.assertRaisesRegex(atoll.InvalidArgument, f"option '{name.replace('_', '-')}' is empty: give a value"):
                    use(**{name: ""})

    def test_a_model_that_this_machine_cannot_hold(self):
        with self.assertRaisesRegex(atoll.FailedPrecondition, "a model of 274877906944 values takes at least 2.0 TiB beside the loop's own"):
            Client({"coordinator": "127.0.0.1:1", **self.client_options()}, [TensorSpec("w", (2 ** 19, 2 ** 19))])

    def test_a_program_that_is_no_engine(self):
        with self.assertRaisesRegex(atoll.AtollError, "the engine '/bin/true' .*ended with exit code 0, before it said anything: check that"):
            Client({"coordinator": "127.0.0.1:1", "engine": "/bin/true", **self.client_options()}, [TensorSpec("w", (2,))])

    def test_a_name_with_control_characters(self):
        hub = self.coordinator()
        with self.assertRaisesRegex(atoll.AtollError, r"worker name '\\x1b\[31mw0' is not valid"):
            self.join(hub.data, *model_and_optimizer(), name="\x1b[31mw0")

    def test_counts_of_the_low_level_answer(self):
        hub = self.coordinator(rounds=1)
        with Client({"coordinator": hub.data, **self.client_options()}, [TensorSpec("w", (2,))]) as client:
            client.next()
            for field in ("tokens", "samples", "optimizer_steps"):
                with self.assertRaisesRegex(atoll.InvalidArgument, f"{field} is -1: give a whole number from 0"):
                    client.answer(**{field: -1})

    def test_counts_of_a_step(self):
        hub = self.coordinator(rounds=1, steps=2)
        with self.join(hub.data, {"w": numpy.zeros(2, numpy.float32)}, None) as run:
            for name, value in (("samples", -7), ("samples", 2 ** 64 + 3), ("samples", 1.5), ("samples", "3"), ("tokens", -5),
                                ("tokens", 2 ** 64 + 5), ("tokens", 2.5), ("tokens", float("nan"))):
                with self.assertRaisesRegex(atoll.InvalidArgument, f"{name} is .*: give a whole number from 0 to 9223372036854775807"):
                    run.step(**{"samples": 3, "tokens": 3, name: value})
            with self.assertRaisesRegex(atoll.InvalidArgument, "samples is -1"):
                run.count_batch(3, -1)
            for loss, text in (("a", "'a'"), (1j, "1j"), (torch.ones(2), r"tensor\(\[1., 1.\]\)"), ([1.0], r"\[1.0\]")):
                for report in (run.report, run.suggest_loss, run.step):
                    with self.assertRaisesRegex(atoll.InvalidArgument, f"loss is {text}: give one number, or a tensor of one value"):
                        report(loss)
            self.assertEqual(run.samples, 0)
            run.step(tokens=3.0, samples=numpy.int32(3), loss=torch.tensor([2.0]))
            with self.assertRaisesRegex(atoll.InvalidArgument, "which with the [0-9]+ samples before is more than"):
                run.step(samples=2 ** 63 - 2, tokens=3)
            run.step(tokens=torch.tensor(3), samples=3)
            self.assertFalse(run.running)
        self.assertEqual(hub.tokens(), 6)

    def test_an_object_that_cannot_be_kept_is_named_at_the_join(self):
        class Kept:
            def state_dict(self):
                return {"numbers": [1, 2], "call": lambda: 0}

            def load_state_dict(self, state):
                pass

        with self.assertRaisesRegex(atoll.InvalidArgument, r"also_save\['mine'\].state_dict\(\)\['call'\] is of type function"):
            self.join("127.0.0.1:1", *model_and_optimizer(), also_save={"mine": Kept()})

    def test_a_state_that_cannot_be_kept_is_named_at_the_join(self):
        ring = [1]
        ring.append(ring)
        for value, text in ((lambda name: True, "is of type function"), ({"bias"}, "is of type set"), (ring, "contains itself")):
            model, optimizer = model_and_optimizer()
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
            scheduler.mine = value
            if not callable(value):  # functions of schedulers are left out
                with self.assertRaisesRegex(atoll.InvalidArgument, rf"also_save\['s'\].state_dict\(\).* {text}"):
                    self.join("127.0.0.1:1", model, optimizer, also_save={"s": scheduler})
            optimizer.param_groups[0]["skipped"] = value
            with self.assertRaisesRegex(atoll.InvalidArgument, rf"optimizer.state_dict\(\).* {text}"):
                self.join("127.0.0.1:1", model, optimizer)

    def test_objects_that_are_no_model_and_no_optimizer(self):
        model, _ = model_and_optimizer()
        for given, text in (((3, None), "the model is a int"), ((model, 3), "the optimizer is a int"), ((model, []), "list of optimizers is empty"),
                            ((model, None, {"also_save": {"x": 3}}), r"also_save\['x'\] has no state_dict"),
                            ((model, torch.optim.SGD(model.parameters(), lr=1), {"learning_rate": "his"}), "learning_rate is 'his'"),
                            ((model, None, {"buffers": "other"}), "buffers is 'other': use None"),
                            (({"w": numpy.zeros(2, numpy.float32)}, None, {"buffers": "mean"}), "buffers is 'mean', and the model is a dict"),
                            (({"w": numpy.zeros(2, numpy.float32)}, None, {"buffers": ["v"]}), "buffers names 'v', which is not in the model"),
                            (({"w": numpy.zeros(2, numpy.float32)}, None, {"buffers": ["w"]}), "no parameter to exchange"),
                            ((model, None, {"island": True}), "fewer than two ranks"),
                            ((model, None, {"island": 3}), "island is 3: use 'auto', False, or a process group of torch.distributed"),
                            ((model, None, {"island": "none"}), "island is 'none': use 'auto', False")):
            with self.assertRaisesRegex(atoll.InvalidArgument, text):
                self.join("127.0.0.1:1", *given[:2], **(given[2] if len(given) > 2 else {}))

    def test_an_optimizer_of_another_model(self):
        """Its steps would change nothing that the run exchanges."""
        model, _ = model_and_optimizer()
        _, others = model_and_optimizer()
        model[2].bias.requires_grad = False
        frozen = torch.optim.Adam([model[2].bias])
        for optimizers, counts, text in ((others, None, r"the optimizer \(SGD\) has none of the 3 parameters that the model trains"),
                                         ([others, frozen], frozen, r"the optimizer \(SGD, Adam\) has none of the 3 parameters")):
            with self.assertRaisesRegex(atoll.InvalidArgument, f"{text}.*Make it from model.parameters"):
                self.join("127.0.0.1:1", model, optimizers, counts=counts)

    def test_an_optimizer_from_before_the_parameters_were_replaced(self):
        model, optimizer = model_and_optimizer()
        for layer in (model[0], model[2]):  # as fully_shard does
            layer.weight, layer.bias = torch.nn.Parameter(layer.weight.detach()), torch.nn.Parameter(layer.bias.detach())
        with self.assertRaisesRegex(atoll.InvalidArgument, "has none of the 4 parameters .* after what replaces parameters"):
            self.join("127.0.0.1:1", model, optimizer)

    def test_an_optimizer_of_a_part_of_the_model(self):
        hub = self.coordinator(rounds=1, steps=2)
        model, _ = model_and_optimizer()
        optimizer = torch.optim.SGD([*model[2].parameters(), torch.nn.Parameter(torch.zeros(2))], lr=0.1)
        with self.join(hub.data, torch.nn.DataParallel(model), optimizer) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        self.assertIs(run.end_reason, atoll.EndReason.FINISHED)

    def test_what_an_evaluation_function_returns(self):
        for returned, text in ((None, "None, a NoneType"), ([1.0, 2], r"\[1.0, 2\], a list"), ((1.0, 2, 3), r"\(1.0, 2, 3\), a tuple"),
                               (torch.zeros(2), r"tensor\(\[0., 0.\]\), a Tensor"), ((1.0, None), r"\(1.0, None\), a tuple"),
                               ((1.0, -5), r"\(1.0, -5\), a tuple"), ("x" * 1000, r"'x{99}\.\.\., a str")):
            hub = self.coordinator(rounds=3, steps=2)
            with self.assertRaisesRegex(atoll.InvalidArgument, f"the evaluation function returned {text}: return the mean loss as one number, or "
                                        r"the pair \(loss, tokens\)"):
                model, optimizer = model_and_optimizer()
                with self.join(hub.data, model, optimizer, evaluate=lambda *_: returned) as run:
                    for batch in run.steps(loader()):
                        take_step(model, optimizer, batch)
            hub.stop(9)
            for state in ("coordinator", "state-w0"):
                shutil.rmtree(self.folder / state, ignore_errors=True)

    def test_a_loss_of_an_evaluation_that_is_too_large(self):
        """It counts as one that is not finite: the version has no loss, and the run goes on."""
        hub = self.coordinator(rounds=2, steps=2, evaluation={"every": 1, "by": "worker"})
        model, optimizer = model_and_optimizer()
        with self.join(hub.data, model, optimizer, evaluate=lambda *_: 1e31) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        self.assertEqual(run.end_reason, atoll.EndReason.FINISHED)
        self.assertNotIn(1e31, [point["value"] for point in hub.metrics()])
        self.assertIn("returned 1e+31: a loss is a finite number of at most 1e+30 in magnitude", self.log("w0.log"))

    def test_an_engine_that_dies_is_reported(self):
        import os
        import signal
        hub = self.coordinator(rounds=1000, steps=2)
        model, optimizer = model_and_optimizer()
        with self.assertRaisesRegex(atoll.Internal, "engine"):
            with self.join(hub.data, model, optimizer) as run:
                for count, batch in enumerate(run.steps(loader())):
                    take_step(model, optimizer, batch)
                    if count == 2:
                        os.kill(engine_of(os.getpid()), signal.SIGKILL)


class LibraryTest(unittest.TestCase):
    def test_a_library_that_is_missing(self):
        import os
        import subprocess
        import sys
        from fixture import python_environment
        done = subprocess.run([sys.executable, "-c", "import atoll; atoll.pull('x:1')"], capture_output=True, text=True, check=False,
                              env=python_environment(ATOLL_LIBRARY=os.devnull))
        self.assertIn("atoll.errors.NotFound: cannot load libatoll_client.so.1: /dev/null", done.stderr)
        self.assertIn("build the target `programs`, and set ATOLL_LIBRARY", done.stderr)
        other = subprocess.run([sys.executable, "-c", "import atoll; atoll.pull('x:1')"], capture_output=True, text=True, check=False,
                               env=python_environment(ATOLL_LIBRARY="libc.so.6"))
        self.assertIn("libc.so.6 is another library", other.stderr)

    def test_the_package_imports_neither_torch_nor_numpy(self):
        import subprocess
        import sys
        from fixture import python_environment
        done = subprocess.run([sys.executable, "-c", "import sys, atoll; print(sorted({'torch', 'numpy'} & set(sys.modules)))"],
                              capture_output=True, text=True, check=True, env=python_environment())
        self.assertEqual(done.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()
