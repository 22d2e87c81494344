"""Models whose losses and values are not those of a language model, with a real coordinator."""
import json
import math
import unittest

import torch

import atoll
from fixture import RunTest


class Losses(RunTest):
    def train(self, loss_of, rounds=3, **more):
        torch.manual_seed(7)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        with atoll.join(self.hub.data, model, optimizer, **self.options(**more)) as run:
            for batch in run.steps([torch.ones(3, 4)] * 4):
                loss_of(model(batch), run).backward()
                optimizer.step()
                optimizer.zero_grad()
        self.assertEqual(self.hub.head(), rounds)

    def test_a_loss_may_be_any_number(self):
        for name, loss_of, evaluated in [("negative", lambda out, run: -out.sigmoid().mean() - 1, 0.0),
                                         ("large", lambda out, run: (out - 3e5).square().mean(), -2.5)]:
            with self.subTest(name):
                self.tearDown()
                self.doCleanups()
                self.setUp()
                self.coordinator(rounds=3, steps=2, learning_rate=1e-6, evaluation={"every": 1})
                self.train(loss_of, evaluate=lambda model, batches: evaluated)
                status = self.hub.status()
                self.assertEqual([evaluation["loss"] for evaluation in status["evaluations"]], [evaluated] * len(status["evaluations"]))
                self.assertGreaterEqual(len(status["evaluations"]), 2)
                for summary in status["rounds"]:
                    self.assertTrue(summary["train_loss"] < -1 if name == "negative" else summary["train_loss"] > 1e10, summary)
                self.assertNotIn("perplexity", self.hub.ctl("status") + self.log("w0.log"))
                points = map(json.loads, self.hub.ctl("metrics", "export", "--format", "jsonl").splitlines())
                self.assertEqual(sum(point["name"] == "worker/loss" for point in points), 3)

    def test_a_worker_without_an_evaluation_says_so_once(self):
        self.coordinator(rounds=6, steps=2)

        def loss_of(out, run):
            if run.version in (1, 3) and run.version not in changed:
                changed.add(run.version)
                self.hub.ctl("config", "set", f"outer.learning_rate=0.{run.version}")
            return out.square().mean()

        changed = set()
        self.train(loss_of, rounds=6)
        self.assertEqual(changed, {1, 3})
        self.assertEqual((self.folder / "w0.log").read_text().count("this worker evaluates nothing"), 1)

    def test_a_model_that_is_not_finite_begins_no_run(self):
        self.coordinator()
        model = torch.nn.Linear(4, 3)
        model.register_buffer("mask", torch.triu(torch.full((3, 3), -math.inf), 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(atoll.InvalidArgument, r"value 1 of tensor 'mask' is not finite \(-inf\)"):
            atoll.join(self.hub.data, model, optimizer, buffers="mean", **self.options("bad")).__enter__()
        good = torch.nn.Linear(4, 3)
        with atoll.join(self.hub.data, good, torch.optim.SGD(good.parameters(), lr=0.1), **self.options("good")) as run:
            self.assertEqual(run.version, 0)


if __name__ == "__main__":
    unittest.main()
