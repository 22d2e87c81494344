"""kill -9 of a Python worker at random moments: nothing is lost, nothing counts twice, the place in the data is right.

ATOLL_KILLS sets the number (default 8). The run with kills must publish the bits of the run without them. A kill between a push and the
write of the state after it leaves the optimizer's state of the round before. So the inner optimizer has no state in that test.
"""
import json
import os
import random
import signal
import time
import unittest

import torch

import atoll
from fixture import PATIENCE_S, Coordinator, RunTest, config, wait_for
from small_worker import BATCH, Indexed, make

KILLS = int(os.environ.get("ATOLL_KILLS", "8"))
ROUNDS = 3 * KILLS
STEPS = 5
CODEC = {"push": "e3m0"}  # with error feedback: a residual that is lost or applied twice changes the bits


class KillTest(RunTest):
    def run_to_its_end(self, folder, kills, seed):
        """(published, journal, contributors) of a run whose worker is killed so often."""
        folder.mkdir()
        hub = Coordinator(folder, config(rounds=ROUNDS, steps=STEPS, codec=CODEC, inner={"optimizer": "sgd"})).start()
        self.addCleanup(hub.stop, signal.SIGKILL)
        chance = random.Random(seed)
        journal = folder / "journal"
        done = 0
        while True:
            worker = self.spawn("small_worker.py", hub.data, "w0", folder / "state", journal, "--pace", 0.02 if kills else 0,
                                log=f"{folder.name}.log")
            if done == kills:
                break
            before = journal.stat().st_size if journal.exists() else 0
            wait_for(lambda at=before: worker.poll() is not None or (journal.exists() and journal.stat().st_size > at),
                     "the worker's first step")
            # At random within about three rounds, so that steps, pushes and saves are hit.
            deadline = time.monotonic() + chance.uniform(0, 3 * STEPS * 0.025)
            while time.monotonic() < deadline and worker.poll() is None:
                time.sleep(0.001)
            if worker.poll() is not None:
                self.assertEqual(worker.returncode, 0, self.log(f"{folder.name}.log"))
                break
            worker.kill()
            worker.wait()
            done += 1
        self.assertEqual(worker.wait(PATIENCE_S), 0, self.log(f"{folder.name}.log"))
        published = atoll.pull(hub.data)
        steps = [json.loads(line) for line in journal.read_text().splitlines()]
        found = published, steps, hub.contributors()
        hub.stop(signal.SIGKILL)
        return found

    def test_a_killed_worker_continues_with_the_same_bits(self):
        whole, steps, _ = self.run_to_its_end(self.folder / "whole", 0, 0)
        self.assertEqual(len(steps), ROUNDS * STEPS)
        killed, journal, contributors = self.run_to_its_end(self.folder / "killed", KILLS, 1)
        self.assertEqual(contributors, {version: ["w0"] for version in range(1, ROUNDS + 1)})
        self.assertEqual(killed.version, whole.version)
        # Steps that a kill undid are taken again: at each place, the same batch on the same version.
        expected = {(version, position): indices for version, position, _, indices in steps}
        for version, position, _, indices in journal:
            self.assertEqual(expected.get((version, position)), indices, (version, position))
        self.assertEqual({(version, position) for version, position, _, _ in journal}, set(expected))
        for name in whole:
            self.assertTrue(torch.equal(whole[name], killed[name]), name)

    def test_a_kill_between_a_push_and_the_write_of_the_state_after_it(self):
        """The push counts once and its samples are not read again; the optimizer's state is that of the round before."""
        hub = self.coordinator(rounds=4, steps=STEPS)
        seen = []

        def live(steps):
            model, _ = make()
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
            batches = torch.utils.data.DataLoader(Indexed(), batch_size=BATCH)
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                taken = [int(state["step"]) for state in optimizer.state.values()]
                seen.append((run.version, run.samples, max(taken, default=0)))
                for count, (inputs, targets, _) in enumerate(run.steps(batches)):
                    (model(inputs).squeeze(1) - targets).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    if count + 1 == steps:
                        break

        live(2 * STEPS)
        wait_for(lambda: hub.head() == 2, "the second push to be merged")
        # What such a kill leaves: the push of the second round, the state of the first.
        states = sorted((self.folder / "state-w0/progress").glob("round-*"))
        self.assertEqual(len(states), 2)
        states[-1].unlink()
        live(None)
        self.assertEqual(seen, [(0, 0, 0), (2, 2 * STEPS * BATCH, STEPS)])
        self.assertEqual(hub.contributors(), {version: ["w0"] for version in range(1, 5)})
        self.assertEqual(hub.tokens(), 4 * STEPS * BATCH)

    def test_the_coordinator_is_ended_and_started_in_mid_run(self):
        folder = self.folder / "hub"
        folder.mkdir()
        hub = Coordinator(folder, config(rounds=12, steps=STEPS, codec=CODEC)).start()
        self.addCleanup(lambda: hub.stop(signal.SIGKILL))
        worker = self.spawn("small_worker.py", hub.data, "w0", folder / "state", folder / "journal", "--pace", 0.02)
        for number in (signal.SIGTERM, signal.SIGKILL):
            head = hub.head()
            wait_for(lambda at=head: hub.head() >= at + 2, "two rounds")
            hub.stop(number)
            hub.start()
        self.assertEqual(worker.wait(PATIENCE_S), 0, self.log())
        self.assertEqual(hub.contributors(), {version: ["w0"] for version in range(1, 13)})


if __name__ == "__main__":
    unittest.main()
