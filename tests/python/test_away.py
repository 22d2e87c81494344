"""Coordinators that are away for a while, that end in mid-run, and that never come.

ATOLL_AWAY_SECONDS sets for how long the killed one is away (default 20).
"""
import os
import pathlib
import re
import signal
import socket
import threading
import time
import unittest
import urllib.request

import torch

import atoll
import small_worker
from fixture import PATIENCE_S, Coordinator, RunTest, config, engine_of, wait_for
from test_run import loader, model_and_optimizer, take_step

AWAY_S = float(os.environ.get("ATOLL_AWAY_SECONDS", "20"))
ROUNDS, STEPS = 40, 5
OVERLAPPED = {"mode": "overlapped", "fragments": 2, "delay_steps": 2}
CODEC = {"push": "e3m0"}  # with error feedback: a residual that is lost or applied twice changes the bits


class Loop(threading.Thread):
    """A worker in a thread of its own, from atoll.join to the end of the run, or until `leave` is set."""

    def __init__(self, address, options, pace):
        super().__init__(daemon=True)
        self.address, self.options, self.pace = address, options, pace
        self.worker, self.positions, self.failure = None, [], None
        self.leave = threading.Event()
        self.start()

    def run(self):
        try:
            model, optimizer = small_worker.make()
            batches = torch.utils.data.DataLoader(small_worker.Indexed(), batch_size=small_worker.BATCH)
            with atoll.join(self.address, model, optimizer, **self.options) as self.worker:
                for inputs, targets, indices in self.worker.steps(batches):
                    self.positions.append(self.worker.samples - len(indices))
                    (model(inputs).squeeze(1) - targets).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    time.sleep(self.pace)
                    if self.leave.is_set():
                        self.leave.clear()
                        self.worker.drain()
        except BaseException as failure:  # noqa: BLE001  the test's thread looks at it
            self.failure = failure

    def waiting_for(self):
        return self.worker.status().get("waiting_for", "")


class AwayTest(RunTest):
    def start_run(self, label, pace, **sections):
        folder = self.folder / label
        folder.mkdir()
        hub = Coordinator(folder, config(rounds=ROUNDS, steps=STEPS, codec=CODEC, inner={"optimizer": "sgd"}, **sections)).start()
        self.addCleanup(hub.stop, signal.SIGKILL)
        options = self.options(state_dir=folder / "state", log_file=folder / "w0.log", drain_seconds=PATIENCE_S)
        return hub, Loop(hub.data, options, pace)

    def finish(self, hub, loop, reason=atoll.EndReason.FINISHED):
        loop.join(PATIENCE_S)
        self.assertIsNone(loop.failure)
        self.assertFalse(loop.is_alive(), "the loop still waits")
        self.assertEqual(loop.worker.end_reason, reason)
        published, contributors, tokens = atoll.pull(hub.data), hub.contributors(), hub.tokens()
        hub.stop(signal.SIGKILL)
        return published, contributors, tokens

    def leave_and_come_back(self, hub, loop, number, seconds, notices):
        """`notices()`: what the loop does while nobody answers."""
        wait_for(lambda: hub.head() >= 2, "two rounds")
        hub.stop(number)
        self.assertEqual(hub.process.returncode, 0 if number == signal.SIGTERM else -number)
        gone = time.monotonic()
        notices()
        while time.monotonic() < gone + seconds:
            self.assertTrue(loop.is_alive(), loop.failure)
            time.sleep(0.1)
        notices()
        hub.start()

    def check_blocking(self, number, seconds):
        hub, loop = self.start_run("whole", 0)
        whole, _, _ = self.finish(hub, loop)
        hub, loop = self.start_run("away", 0.02)
        self.leave_and_come_back(hub, loop, number, seconds, lambda: wait_for(
            lambda: re.search("the coordinator, to .*(push|pull)", loop.waiting_for()), "the status to say what the loop waits for"))
        found, contributors, tokens = self.finish(hub, loop)
        self.assertEqual(contributors, {version: ["w0"] for version in range(1, ROUNDS + 1)})
        self.assertEqual(tokens, ROUNDS * STEPS * small_worker.BATCH)
        # Each sample once and in order: no step was undone, and none repeated.
        self.assertEqual(loop.positions, [step * small_worker.BATCH for step in range(ROUNDS * STEPS)])
        for name in whole:
            self.assertTrue(torch.equal(whole[name], found[name]), name)

    def test_a_killed_coordinator_comes_back_and_nothing_is_lost(self):
        self.check_blocking(signal.SIGKILL, AWAY_S)

    def test_a_coordinator_that_ends_cleanly_comes_back(self):
        self.check_blocking(signal.SIGTERM, 3)

    def test_an_overlapped_loop_trains_on(self):
        hub, loop = self.start_run("away", 0.02, sync=OVERLAPPED)
        versions = []

        def trains_on():
            taken, step = len(loop.positions), loop.worker.status()["step"]
            # More than a cycle: whatever had arrived is in use by then.
            wait_for(lambda: len(loop.positions) > taken + 2 * STEPS, "steps")
            status = loop.worker.status()
            self.assertEqual((status["phase"], status["waiting_for"]), ("training", ""))
            self.assertGreater(status["step"], step + STEPS)
            versions.append(status["version"])

        self.leave_and_come_back(hub, loop, signal.SIGKILL, min(AWAY_S, 5), trains_on)
        _, contributors, tokens = self.finish(hub, loop)
        self.assertEqual(versions[0], versions[1])
        self.assertGreater(max(contributors), versions[1])
        # Once for each fragment, and no version without it. What it trained meanwhile counts, so there may be fewer versions.
        self.assertEqual(sorted(contributors), list(range(1, max(contributors) + 1)))
        self.assertLessEqual({tuple(names) for names in contributors.values()}, {("w0",), ("w0", "w0")})
        self.assertGreaterEqual(tokens, ROUNDS * STEPS * small_worker.BATCH)
        # No step was undone, and none repeated.
        self.assertEqual(loop.positions, [step * small_worker.BATCH for step in range(len(loop.positions))])

    def test_an_overlapped_loop_that_leaves_says_what_it_waits_for(self):
        hub, loop = self.start_run("away", 0.02, sync=OVERLAPPED)
        wait_for(lambda: hub.head() >= 2, "two rounds")
        hub.stop(signal.SIGKILL)
        loop.leave.set()
        wait_for(lambda: "the coordinator, to acknowledge" in loop.waiting_for(), "the status to say what the loop waits for")
        self.assertEqual(loop.worker.status()["phase"], "pushing")
        hub.start()
        _, contributors, _ = self.finish(hub, loop, atoll.EndReason.DRAINED)
        self.assertIn("the last push counted", loop.worker.end_text)
        self.assertEqual(sorted(contributors), list(range(1, max(contributors) + 1)))


class NeverThereTest(RunTest):
    def waiting(self, what, address, until):
        """A process that waits, once its log says `until`."""
        process = self.spawn("waiting_worker.py", what, address, self.folder / "state", log=f"{what}.log")
        wait_for(lambda: until in self.log(f"{what}.log"), f"'{until}' in the log")
        return process, engine_of(process.pid)

    def check_ends(self, process, engine):
        process.wait(PATIENCE_S)
        wait_for(lambda: not pathlib.Path(f"/proc/{engine}").exists(), "the engine's end")

    def test_ctrl_c_ends_a_pull_that_waits(self):
        process, engine = self.waiting("pull", "127.0.0.1:1", "trying again")
        process.send_signal(signal.SIGINT)
        self.check_ends(process, engine)
        self.assertIn("interrupted", self.log("pull.log"))

    def test_the_engine_of_a_pull_ends_with_its_process(self):
        process, engine = self.waiting("pull", "127.0.0.1:1", "trying again")
        process.kill()
        self.check_ends(process, engine)

    def test_ctrl_c_ends_a_join_that_waits(self):
        process, engine = self.waiting("join", "127.0.0.1:1", "waiting for the coordinator, will keep trying")
        process.send_signal(signal.SIGINT)
        self.check_ends(process, engine)
        self.assertIn("interrupted: atoll.join ended before the first step", self.log("join.log"))

    def test_a_pull_goes_on_when_the_first_version_is_there(self):
        hub = self.coordinator(rounds=1, steps=1)
        process, _ = self.waiting("pull", hub.data, "the run 'python-test' has no published version yet")
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, **self.options()) as run:
            for batch in run.steps(loader()):
                take_step(model, optimizer, batch)
        self.assertEqual(process.wait(PATIENCE_S), 0, self.log("pull.log"))
        self.assertRegex(self.log("pull.log"), "pulled [01]")

    def test_what_gives_up_after_a_minute_and_what_does_not(self):
        hub = self.coordinator(rounds=1, steps=1)
        unknown = "no-such-host.invalid:7600"
        model = {"w": memoryview(bytearray(12)).cast("f")}
        patient, _ = self.waiting("join", unknown, "waiting for the coordinator")
        calls = {"join": lambda: atoll.join(unknown, model, **self.options()), "unseeded": lambda: atoll.pull(hub.data),
                 "nobody": lambda: atoll.pull("127.0.0.1:1")}
        failures = {}

        def call(name):
            try:
                calls[name]()
            except atoll.AtollError as failure:
                failures[name] = failure

        threads = [threading.Thread(target=call, args=(name,)) for name in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        for name, text in (("join", "no-such-host.invalid.*give option wait-forever to keep trying"),
                           ("unseeded", "the run 'python-test' has no published version yet, not even version 0.*Start a worker"),
                           ("nobody", "127.0.0.1:1")):
            self.assertIsInstance(failures.get(name), atoll.Unavailable, (name, failures))
            self.assertRegex(str(failures[name]), text)
        self.assertIsNone(patient.poll(), self.log("join.log"))
        patient.send_signal(signal.SIGINT)
        self.assertEqual(patient.wait(PATIENCE_S), 0, self.log("join.log"))


class ServiceTest(RunTest):
    def test_metrics_are_served_and_the_ready_file_is_there(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        hub = self.coordinator(rounds=100, steps=4)
        ready = self.folder / "ready"
        model, optimizer = model_and_optimizer()
        with atoll.join(hub.data, model, optimizer, metrics_listen=address, ready_file=ready, **self.options()) as run:
            self.assertTrue(ready.exists())
            for taken, batch in enumerate(run.steps(loader())):
                if taken == 10:
                    numbers = self.scrape(address)
                    self.assertEqual(numbers["atoll_worker_inner_steps_total"], 10)
                    self.assertEqual(numbers["atoll_worker_tokens_total"], 30)
                    self.assertEqual(numbers["atoll_worker_rounds_total"], 2)
                    self.assertEqual(numbers["atoll_worker_connected"], 1)
                    self.assertEqual(numbers['atoll_worker_contributions_total{result="accepted"}'], 2)
                    self.assertGreaterEqual(numbers["atoll_worker_wait_seconds_total"], 0)
                    run.stop()
                take_step(model, optimizer, batch)
        self.assertFalse(ready.exists())

    def scrape(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.status, 200)
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line and not line.startswith("#"))}


if __name__ == "__main__":
    unittest.main()
