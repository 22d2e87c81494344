"""How a worker ends: before its first step, by signals and commands, and what it says of its model then."""
import contextlib
import os
import shutil
import signal
import threading
import unittest
import warnings

import torch

import atoll
from atoll.signals import DrainOnSignal
from fixture import RunTest, wait_for
from test_run import loader, model_and_optimizer, take_step


class BeforeTheFirstStepTest(RunTest):
    def signal_when(self, ready, number):
        """Sends a signal to this process once `ready`."""
        def wait_and_send():
            wait_for(ready, "the join to wait")
            os.kill(os.getpid(), number)

        sender = threading.Thread(target=wait_and_send)
        sender.start()
        self.addCleanup(sender.join)

    @contextlib.contextmanager
    def warned(self, *patterns):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self.assertEqual(len(caught), len(patterns), [str(one.message) for one in caught])
        for one, pattern in zip(caught, patterns):
            self.assertRegex(str(one.message), pattern)
            self.assertEqual(one.filename, __file__)

    def test_ctrl_c_without_a_coordinator_is_a_keyboard_interrupt(self):
        before = signal.getsignal(signal.SIGINT)
        self.signal_when(lambda: "waiting for the coordinator" in self.log("w0.log"), signal.SIGINT)
        with self.warned():
            with self.assertRaisesRegex(KeyboardInterrupt, "atoll.join ended before the first step, so the model is not trained here "
                                        r"\(drained; there was nothing to push\). To train, start the program again"):
                atoll.join("127.0.0.1:1", *model_and_optimizer(), **self.options())
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def paused(self):
        """The coordinator of a run in which no step is due."""
        hub = self.coordinator(rounds=3)
        hub.ctl("run", "pause")
        return hub

    def test_sigterm_in_a_paused_run_ends_the_program(self):
        hub = self.paused()
        model, optimizer = model_and_optimizer()
        self.signal_when(lambda: "joined the run" in self.log("w0.log"), signal.SIGTERM)
        with self.warned("ended before the first step, so the model is not trained here"):
            with self.assertRaises(SystemExit) as caught:
                with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                    for _ in run.steps(loader()):
                        self.fail("the run is paused")
        self.assertEqual(caught.exception.code, 128 + signal.SIGTERM)
        self.assertNotIn("step", vars(optimizer))

    def test_a_command_of_the_operator_is_a_warning(self):
        """The program may end as after a run: what started it must not start it again."""
        hub = self.paused()
        for name, command, text in (("w0", "workers drain w0", "drained"), ("w1", "run stop --yes", "stopped")):
            def remove():
                wait_for(lambda: "joined the run" in self.log(f"{name}.log"), "the join")
                hub.ctl(*command.split())

            operator = threading.Thread(target=remove)
            operator.start()
            with self.warned(rf"ended before the first step, so the model is not trained here \(.*{text}"):
                with atoll.join(hub.data, *model_and_optimizer(), **self.options(name)) as run:
                    self.assertFalse(run.running)
                    self.assertEqual(list(run.steps(loader())), [])
            operator.join()

    def test_a_run_that_is_finished_gives_its_last_version(self):
        hub = self.coordinator(rounds=2, steps=2)
        for life in range(2):
            model, optimizer = model_and_optimizer(seed=life)
            with self.warned():
                with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                    for batch in run.steps(loader()):
                        take_step(model, optimizer, batch)
            self.assertEqual((run.end_reason, run.version), (atoll.EndReason.FINISHED, 2))
            published = atoll.pull(hub.data)
            self.assertTrue(all(torch.equal(published[name], value) for name, value in model.state_dict().items()))

    def test_what_a_signal_raises(self):
        wish = DrainOnSignal()
        self.addCleanup(wish.remove)
        wish.install()
        self.assertIsInstance(wish.interruption("why"), atoll.Cancelled)  # another rank got the signal
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(wish.interruption("why").code, 143)
        in_thread = DrainOnSignal()
        thread = threading.Thread(target=in_thread.install)
        thread.start()
        thread.join()
        self.addCleanup(in_thread.remove)
        in_thread.number = signal.SIGINT
        self.assertIsInstance(in_thread.interruption("why"), atoll.Cancelled)


class AfterStepsTest(RunTest):
    def ended(self, hub, drains_after=None, name="w0"):
        """(run, model, versions of the steps) of a worker that trains until its end."""
        model, optimizer = model_and_optimizer()
        versions = []
        with atoll.join(hub.data, model, optimizer, **self.options(name)) as run:
            for batch in run.steps(loader()):
                versions.append(run.version)
                take_step(model, optimizer, batch)
                if len(versions) == drains_after:
                    run.drain()
        return run, model, versions

    def test_the_version_after_the_end_is_that_of_the_model(self):
        run, _, versions = self.ended(self.coordinator(rounds=3, steps=4))
        self.assertEqual((versions[-1], run.version), (2, 3))

    def test_the_version_of_a_drained_worker_stays(self):
        run, _, versions = self.ended(self.coordinator(rounds=3, steps=4), drains_after=6)
        self.assertEqual((versions[-1], run.version), (1, 1))

    def test_the_version_of_an_overlapped_worker_is_the_last_that_it_used(self):
        hub = self.coordinator(rounds=3, steps=4, sync={"mode": "overlapped", "fragments": 1, "delay_steps": 2})
        run, _, versions = self.ended(hub)
        self.assertEqual(run.version, atoll.pull(hub.data).version)
        self.assertGreaterEqual(run.version, versions[-1])

    def test_the_reason_is_shown_by_its_name(self):
        run, _, _ = self.ended(self.coordinator(rounds=1, steps=1))
        self.assertEqual(f"{run.end_reason} {str(run.end_reason)}", "FINISHED FINISHED")
        self.assertEqual(run.end_reason, 1)

    def test_what_is_said_when_a_signal_drains(self):
        for number, again in ((signal.SIGTERM, "A second SIGTERM leaves without that"), (signal.SIGINT, "Press Ctrl-C again to leave without that")):
            hub = self.coordinator(rounds=1000, steps=4)
            name, log = f"w{int(number)}", f"out-{int(number)}.log"
            worker = self.spawn("small_worker.py", hub.data, name, self.folder / name, self.folder / "journal", "--pace", "0.02", "--progress",
                                log=log)
            wait_for(lambda: hub.head() >= 1, "a round")
            worker.send_signal(number)
            self.assertEqual(worker.wait(60), 0, self.log(log))
            self.assertIn(f"atoll: draining: pushing the steps done so far. {again}\n", self.log(log))
            self.assertRegex(self.log(log), "atoll: drained.*The model has this worker's own values; atoll.pull has the published ones\n")
            hub.stop(signal.SIGKILL)
            shutil.rmtree(self.folder / "coordinator")


if __name__ == "__main__":
    unittest.main()
