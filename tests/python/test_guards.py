"""Training that would be lost, or counted as what it is not, without a word."""
import unittest

import numpy

import atoll
from fixture import RunTest


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


if __name__ == "__main__":
    unittest.main()
