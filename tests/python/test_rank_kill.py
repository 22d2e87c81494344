"""kill -9 of one rank of an island, with DistributedDataParallel and with fully_shard: the other rank ends with an error, and after a restart
of both with the same state directory nothing is lost and nothing counts twice.

A run with kills must publish the bits of the run without them. ATOLL_KILLS sets the number of kills at random moments (default 2). Such a kill
may come between a push and the write of the state after it, which leaves the moments of the round before, so the optimizer of that test has
none. Ranks with moments are killed in the middle of a round.
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
from small_worker import BATCH

KILLS = int(os.environ.get("ATOLL_KILLS", "2"))
STEPS = 5
SAMPLES = 2 * BATCH  # of a step, of both ranks
LOCAL, SHARED = {"mode": "local"}, {"mode": "shared", "partitions": 1}
# fully_shard is in PyTorch since 2.6 (Debian 13), whose streams of the CPU lack what it calls.
FSDP = hasattr(getattr(torch.cpu, "Stream", None), "record_event")


class RankKillTest(RunTest):
    def run_to_its_end(self, name, rounds, kill, *more, **sections):
        """What an island has left behind. `kill`(start, folder): the lives before the last; `start`(*arguments, **of one rank) begins one."""
        folder = self.folder / name
        folder.mkdir()
        # With error feedback: a residual that is lost or applied twice changes the bits.
        hub = Coordinator(folder, config(rounds=rounds, steps=STEPS, batch=SAMPLES, codec={"push": "e3m0"}, **sections)).start()
        self.addCleanup(hub.stop, signal.SIGKILL)
        lives = []

        def start(*arguments, **of_one):
            lives.append([self.spawn("killed_rank.py", rank, folder / f"store{len(lives)}", hub.data, folder / "state", folder / "rank", *more,
                                     *arguments, *of_one.get(f"rank{rank}", ()), log=f"{name}.{rank}.log") for rank in range(2)])
            return lives[-1]

        kill(start, folder)
        for rank, process in enumerate(start()):
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"{name}.{rank}.log"))
        # Each version is made of one contribution of all steps.
        self.assertEqual(hub.contributed_steps(), {version: {"w0": STEPS} for version in range(1, rounds + 1)})
        self.assertEqual(hub.contributors(), {version: ["w0"] for version in range(1, rounds + 1)})
        self.assertEqual(hub.tokens(), rounds * STEPS * SAMPLES)
        journals = [[json.loads(line) for line in (folder / f"rank.{rank}").read_text().splitlines()] for rank in range(2)]
        found = atoll.pull(hub.data), journals, [json.loads((folder / f"rank.{rank}.end").read_text()) for rank in range(2)]
        hub.stop(signal.SIGKILL)
        return found

    def check(self, rounds, kill, *more, **sections):
        whole, steps, ends = self.run_to_its_end("whole", rounds, lambda *_: None, *more, **sections)
        killed, journals, ends_after_kills = self.run_to_its_end("killed", rounds, kill, *more, **sections)
        for rank, journal in enumerate(journals):
            # Steps that a kill undid are taken again: at each place, the same batch on the same version.
            self.assertEqual(len(steps[rank]), rounds * STEPS)
            expected = {(version, position): indices for version, position, indices in steps[rank]}
            self.assertEqual(sorted(expected), [(step // STEPS, step * SAMPLES) for step in range(rounds * STEPS)])
            for version, position, indices in journal:
                self.assertEqual(expected.get((version, position)), indices, (rank, version, position))
            self.assertEqual({(version, position) for version, position, _ in journal}, set(expected))
        for first, second in zip(*steps):
            self.assertFalse(set(first[-1]) & set(second[-1]), "the ranks read the same samples")
        self.assertEqual(ends_after_kills, ends)
        for name in whole:
            self.assertTrue(torch.equal(whole[name], killed[name]), name)
        return ends

    def check_lost(self, folder, ranks, killed):
        """The killed rank is gone, and the other neither hangs nor ends as if all were well."""
        self.assertEqual(ranks[killed].wait(PATIENCE_S), -signal.SIGKILL, self.log(f"{folder.name}.{killed}.log"))
        self.assertNotEqual(ranks[1 - killed].wait(PATIENCE_S), 0, self.log(f"{folder.name}.{1 - killed}.log"))

    def kill_at_random(self, start, folder):
        chance = random.Random(1)
        for number in range(KILLS):
            rank = number % 2
            journal = folder / f"rank.{rank}"
            before = journal.stat().st_size if journal.exists() else 0
            ranks = start("--pace", 0.02)
            wait_for(lambda at=before, path=journal, of=ranks: any(process.poll() is not None for process in of) or
                     (path.exists() and path.stat().st_size > at), "the first step of a rank")
            # At random within about three rounds, so that steps, pushes and saves are hit.
            time.sleep(chance.uniform(0, 3 * STEPS * 0.025))
            ranks[rank].kill()
            self.check_lost(folder, ranks, rank)

    def kill_in_mid_round(self, start, folder):
        for rank, at in ((1, (2 * STEPS + 2) * SAMPLES), (0, (3 * STEPS + 3) * SAMPLES)):
            self.check_lost(folder, start(**{f"rank{rank}": ("--die-at", at)}), rank)

    def check_random(self, *more, **sections):
        self.check(6 * KILLS, self.kill_at_random, *more, inner={"optimizer": "sgd"}, **sections)

    def check_moments(self, *more, **sections):
        ends = self.check(5, self.kill_in_mid_round, "--moments", *more, **sections)
        self.assertEqual([end["steps"] for end in ends], [[5 * STEPS], [5 * STEPS]])

    def test_ddp_killed_at_random(self):
        self.check_random(data=SHARED)

    def test_ddp_keeps_its_moments(self):
        self.check_moments(data=LOCAL)

    @unittest.skipUnless(FSDP, "this PyTorch has no fully_shard for the CPU")
    def test_fsdp2_killed_at_random(self):
        self.check_random("--fsdp", data=LOCAL)

    @unittest.skipUnless(FSDP, "this PyTorch has no fully_shard for the CPU")
    def test_fsdp2_keeps_its_moments(self):
        self.check_moments("--fsdp", data=SHARED)


if __name__ == "__main__":
    unittest.main()
