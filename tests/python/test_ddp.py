"""Two ranks over gloo as one worker: DistributedDataParallel and fully_shard."""
import json
import time
import unittest

import torch

import atoll
from fixture import PATIENCE_S, RunTest, wait_for

# fully_shard is in PyTorch since 2.6 (Debian 13), whose streams of the CPU lack what it calls.
FSDP = hasattr(getattr(torch.cpu, "Stream", None), "record_event")


class IslandTest(RunTest):
    def island(self, hub, *more, life=0):
        out = self.folder / f"out{life}"
        ranks = [self.spawn("ddp_worker.py", rank, self.folder / f"store{life}", hub.data, self.folder / "state", out, *more,
                            log=f"rank{rank}.log") for rank in range(2)]
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"rank{rank}.log"))
        return [json.loads((self.folder / f"{out.name}.{rank}").read_text()) for rank in range(2)]

    def check_run(self, *more):
        hub = self.coordinator(rounds=3, steps=4, batch=6)
        found = self.island(hub, *more)
        self.assertEqual([rank["end"] for rank in found], ["FINISHED", "FINISHED"])
        self.assertEqual(len(found[0]["hashes"]), 12)
        self.assertEqual(found[0]["hashes"], found[1]["hashes"])
        self.assertEqual([rank["samples"] for rank in found], [72, 72])
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"], 3: ["w0"]})
        self.assertEqual(hub.tokens(), 72)
        self.assertEqual(found[0]["evaluated"], found[1]["evaluated"])
        losses = [json.loads(line) for line in hub.ctl("metrics", "export", "--format", "jsonl").splitlines()]
        self.assertIn(1.5, [point["value"] for point in losses if point["name"] == "validation/loss"])

    def check_restart(self, *more):
        hub = self.coordinator(rounds=4, steps=4, batch=6)
        first = self.island(hub, *more, "--term", "1")  # the rank without the engine is told
        self.assertEqual([rank["end"] for rank in first], ["DRAINED", "DRAINED"])
        wait_for(lambda: hub.head() == 2, "the pushed steps to be merged")
        second = self.island(hub, *more, life=1)
        self.assertEqual([rank["end"] for rank in second], ["FINISHED", "FINISHED"])
        self.assertEqual(second[0]["hashes"], second[1]["hashes"])
        # The moments of both lives: each optimizer step is counted once.
        steps = len(first[0]["hashes"]) + len(second[0]["hashes"])
        self.assertEqual([set(rank["optimizer_steps"]) for rank in second], [{steps}, {steps}])
        self.assertTrue(all(torch.isfinite(tensor).all() for tensor in atoll.pull(hub.data).values()))

    def test_ddp(self):
        self.check_run()

    def test_ranks_that_differ_do_not_join(self):
        hub = self.coordinator(rounds=3, steps=4, batch=6)
        for life, (alone, text) in enumerate((
                ("type", "Rank 0 has tensor '0.weight': torch.float32 .*, and rank 1 has tensor '0.weight': torch.float64 "),
                ("frozen", "Rank 0 has hash of the frozen parameters: , and rank 1 has hash of the frozen parameters: [0-9a-f]{64}"),
                ("setting", "Rank 0 has weight_decay in group 0 of the optimizer: 0.01, and rank 1 has .*: 0.5"),
                ("mine", "Rank 0 has argument learning_rate: run, and rank 1 has argument learning_rate: mine"),
                ("evaluate", "Rank 0 has argument evaluate: a function, and rank 1 has argument evaluate: none"))):
            with self.subTest(alone=alone):
                for log in self.failed_ranks(hub, life, "--alone", alone):
                    self.assertRegex(log, "InvalidArgument: the ranks of this worker differ. " + text)
        self.assertEqual(hub.head(), 0)

    def test_a_rank_that_cannot_join_ends_all(self):
        logs = self.failed_ranks(self.coordinator(rounds=3, steps=4, batch=6), 0, "--alone", "optimizer")
        self.assertRegex(logs[0], r"FailedPrecondition: rank 1 of this worker cannot join: the optimizer \(AdamW\) has none of the 4 parameters")
        self.assertRegex(logs[1], r"InvalidArgument: the optimizer \(AdamW\) has none of the 4 parameters")

    def test_ranks_that_do_not_average_their_gradients_are_an_error(self):
        hub = self.coordinator(rounds=3, steps=4, batch=6)
        for log in self.failed_ranks(hub, 0, "--alone", "raw"):
            self.assertIn("FailedPrecondition: the parameters of rank 1 differ from those of rank 0, because the ranks do not average", log)
        self.assertEqual(hub.head(), 0)

    def test_an_evaluation_that_fails_on_one_rank_ends_all(self):
        for alone, text in (("fails", "ValueError: no data"), ("changes", "the evaluation function changed '0.weight'")):
            hub = self.coordinator(rounds=3, steps=4, batch=6)
            logs = self.failed_ranks(hub, 0, "--alone", alone)
            self.assertIn("FailedPrecondition: the evaluation function failed on another rank", logs[0])
            self.assertIn(text, logs[1])
            self.fresh()

    def failed_ranks(self, hub, life, *more):
        """What each rank of an island said that failed."""
        ranks = [self.spawn("ddp_worker.py", rank, self.folder / f"store{life}", hub.data, self.folder / f"state{life}", self.folder / "out", *more,
                            log=f"rank{rank}.{life}.log") for rank in range(2)]
        logs = []
        for rank, process in enumerate(ranks):
            self.assertNotEqual(process.wait(PATIENCE_S), 0)
            logs.append(self.log(f"rank{rank}.{life}.log"))
        return logs

    def test_another_default_type(self):
        self.check_run("--float64")

    def test_a_wait_that_is_longer_than_the_timeout_of_the_ranks(self):
        """The round waits for a second worker for longer than the ranks wait for each other."""
        hub = self.coordinator(rounds=3, steps=4, batch=6, workers=2)
        ranks = [self.spawn("ddp_worker.py", rank, self.folder / "store", hub.data, self.folder / "state", self.folder / "out", "--timeout", 6,
                            log=f"rank{rank}.log") for rank in range(2)]
        wait_for(lambda: "w0" in hub.ctl("workers", "list"), "the ranks to join")
        time.sleep(9)
        self.assertEqual([process.poll() for process in ranks], [None, None], self.log("rank1.log"))
        other = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
        optimizer = torch.optim.AdamW(other.parameters(), lr=0.1)
        with atoll.join(hub.data, other, optimizer, **self.options("w1")) as run:
            for inputs in run.steps([torch.ones(3, 4)]):
                other(inputs).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"rank{rank}.log"))

    def test_all_ranks_skip_a_step_that_is_not_finite_on_one(self):
        hub = self.coordinator(rounds=3, steps=4, batch=6)
        found = self.island(hub, "--bad", "5")
        self.assertEqual([rank["stepped"][5] for rank in found], [False, False])
        self.assertEqual([rank["end"] for rank in found], ["FINISHED", "FINISHED"])
        self.assertEqual(found[0]["hashes"], found[1]["hashes"])
        self.assertEqual(set(found[0]["optimizer_steps"]), set(found[1]["optimizer_steps"]))

    def test_ddp_drains_and_comes_back(self):
        self.check_restart()

    def test_ddp_with_averaged_buffers(self):
        hub = self.coordinator(rounds=3, steps=4, batch=6)
        found = self.island(hub, "--buffers")
        self.assertEqual([rank["end"] for rank in found], ["FINISHED", "FINISHED"])
        statistics = found[0]["statistics"]
        self.assertEqual(statistics, found[1]["statistics"])
        self.assertEqual(sorted(statistics), ["0", "1", "2"])
        self.assertEqual(statistics["0"], [[0] * 6, [1] * 6])
        self.assertNotEqual(statistics["1"], statistics["0"])
        self.assertEqual(sorted(name for name in atoll.pull(hub.data) if name.startswith("1.")),
                         ["1.bias", "1.running_mean", "1.running_var", "1.weight"])

    @unittest.skipUnless(FSDP, "this PyTorch has no fully_shard for the CPU")
    def test_fsdp2(self):
        self.check_run("--fsdp")

    @unittest.skipUnless(FSDP, "this PyTorch has no fully_shard for the CPU")
    def test_fsdp2_drains_and_comes_back(self):
        self.check_restart("--fsdp")


if __name__ == "__main__":
    unittest.main()
