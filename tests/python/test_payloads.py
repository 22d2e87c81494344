"""Pushes of equal content are equal bytes, whoever pushes: a C program, Python with PyTorch of two releases, and Python without it.

All workers of a run have the same published parameters, and their steps write the same values. So their last pushes must have the same
payload, and their encodings must have lost the same. In an overlapped run this holds for each fragment.
"""
import os
import pathlib
import random
import struct
import subprocess
import sys
import unittest

import fixed_worker
from fixture import HERE, PATIENCE_S, ROOT, RunTest, config, push_of, python_environment

ELEMENTS = fixed_worker.FIRST + fixed_worker.ROWS * fixed_worker.COLUMNS
ROUNDS = 3  # the residual of each goes into the next
PROGRAM = pathlib.Path(os.environ.get("ATOLL_TEST_BIN", "."), "../tests/fixed_values")


def other_python():
    """The Python with the other PyTorch, if there is one."""
    current = subprocess.run([ROOT / "scripts/interop.sh", "--python"], capture_output=True, text=True, check=True).stdout.strip()
    chosen = current if os.path.realpath(sys.prefix) == "/usr" else "/usr/bin/python3"
    found = os.access(chosen, os.X_OK) and subprocess.run([chosen, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    return chosen if found else None


class EqualPushes(RunTest):
    def start(self, name, command):
        with open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                       env=python_environment())
        self.processes.append(process)
        return process

    def write_values(self):
        """The file of the values that every step writes."""
        chance = random.Random(3)
        values = [chance.gauss(0, 1) * 10 ** chance.randint(-12, 1) for _ in range(ELEMENTS)]
        values[:4] = [0.0, -0.0, 1e-42, -3.0]  # a subnormal number too
        wanted = self.folder / "values"
        wanted.write_bytes(struct.pack(f"<{ELEMENTS}f", *values))
        return wanted

    def check(self, codec, steps, cycle=0, fragments=1, **sections):
        """[(codec, base, payload, residual)] of the last push of each fragment, which all workers have in common."""
        if not PROGRAM.exists():
            self.skipTest(f"{PROGRAM} is not built")
        wanted = self.write_values()
        pythons = {"w1": (sys.executable, "torch"), "w2": (sys.executable, "plain")}
        other = other_python()
        if other:
            pythons["w3"] = (other, "torch")
        names = ["w0", *pythons]
        hub = self.coordinator(config(rounds=ROUNDS, steps=steps, workers=len(names), codec={"push": codec}, **sections))
        state = {name: self.folder / f"state-{name}" for name in names}
        workers = {"w0": self.start("w0", [PROGRAM, wanted, cycle, f"coordinator={hub.data}", "name=w0", f"state-dir={state['w0']}"])}
        for name, (python, kind) in pythons.items():
            workers[name] = self.start(name, [python, "-B", HERE / "fixed_worker.py", wanted, cycle, hub.data, name, state[name], kind])
        for name, process in workers.items():
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"{name}.out"))
        found = [push_of(state["w0"], fragment) for fragment in range(fragments)]
        for fragment, first in enumerate(found):
            self.assertGreaterEqual(first[1], ROUNDS - 1)
            self.assertTrue(any(first[2]), "a payload of zeros shows nothing")
            for name in pythons:
                self.assertEqual(push_of(state[name], fragment), first, (name, fragment))
        return found


class PayloadTest(EqualPushes):
    def check_blocking(self, codec):
        (found,) = self.check(codec, steps=4)
        self.assertEqual(found[1], ROUNDS - 1)
        return found

    def test_fp32(self):
        self.assertGreaterEqual(len(self.check_blocking("fp32")[2]), 4 * ELEMENTS)

    def test_e3m0(self):
        _, _, payload, residual = self.check_blocking("e3m0")
        self.assertLess(len(payload), 4 * ELEMENTS / 6)
        self.assertTrue(any(residual), "without a loss in the encoding its residual shows nothing")

    def test_int4(self):
        self.assertTrue(any(self.check_blocking("int4")[3]))


class OverlappedPayloadTest(EqualPushes):
    """The fragments are one tensor each. A cycle is long, so that the workers can wait in it for late answers (fixed_worker.py)."""

    def check_overlapped(self, codec):
        cycle = 1000
        return self.check(codec, steps=cycle, cycle=cycle, fragments=2, sync={"mode": "overlapped", "fragments": 2, "delay_steps": 2})

    def test_fp32(self):
        self.assertGreaterEqual(sum(len(payload) for _, _, payload, _ in self.check_overlapped("fp32")), 4 * ELEMENTS)

    def test_e3m0(self):
        for _, _, payload, residual in self.check_overlapped("e3m0"):
            self.assertLess(len(payload), 4 * ELEMENTS / 6)
            self.assertTrue(any(residual), "without a loss in the encoding its residual shows nothing")

    def test_int4(self):
        for _, _, _, residual in self.check_overlapped("int4"):
            self.assertTrue(any(residual))


if __name__ == "__main__":
    unittest.main()
