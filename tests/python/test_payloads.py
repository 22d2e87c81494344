"""Pushes of equal content are equal bytes, whoever pushes: a C program, Python with PyTorch of two releases, and Python without it.

All workers of a run have the same published parameters, and their steps write the same values. So their last pushes must have the same
payload, and their encodings must have lost the same.
"""
import os
import pathlib
import random
import struct
import subprocess
import sys
import unittest

import fixed_worker
from fixture import HERE, PATIENCE_S, ROOT, RunTest, config, python_environment

ELEMENTS = fixed_worker.FIRST + fixed_worker.ROWS * fixed_worker.COLUMNS
ROUNDS = 3  # the residual of each goes into the next
PROGRAM = pathlib.Path(os.environ.get("ATOLL_TEST_BIN", "."), "../tests/fixed_values")


def other_python():
    """The Python with the other PyTorch, if there is one."""
    current = subprocess.run([ROOT / "scripts/interop.sh", "--python"], capture_output=True, text=True, check=True).stdout.strip()
    chosen = current if os.path.realpath(sys.prefix) == "/usr" else "/usr/bin/python3"
    found = os.access(chosen, os.X_OK) and subprocess.run([chosen, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    return chosen if found else None


def push_of(state_dir):
    """(codec, base, payload, residual) of the last push, from the file that client/sync/worker_checkpoint.cc writes."""
    data = (pathlib.Path(state_dir) / "progress/push-0").read_bytes()
    at = len("ATOLLWS1") + 1
    for _ in range(3):  # run, worker, model
        at += 4 + struct.unpack_from("<I", data, at)[0]
    _, _, base, _, codec = struct.unpack_from("<QIQIB", data, at)
    at += struct.calcsize("<QIQIB") + struct.calcsize("<IQIBIQd")
    (size,) = struct.unpack_from("<Q", data, at)
    payload = data[at + 8:at + 8 + size]
    at += 8 + size
    (size,) = struct.unpack_from("<Q", data, at)
    residual = data[at + 8:at + 8 + 4 * size]
    assert at + 8 + 4 * size + 6 == len(data), "the format of the file has changed"
    return codec, base, payload, residual


class PayloadTest(RunTest):
    def start(self, name, command, **environment):
        with open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                       env=python_environment(**environment))
        self.processes.append(process)
        return process

    def check(self, codec):
        if not PROGRAM.exists():
            self.skipTest(f"{PROGRAM} is not built")
        chance = random.Random(3)
        values = [chance.gauss(0, 1) * 10 ** chance.randint(-12, 1) for _ in range(ELEMENTS)]
        values[:4] = [0.0, -0.0, 1e-42, -3.0]  # a subnormal number too
        wanted = self.folder / "values"
        wanted.write_bytes(struct.pack(f"<{ELEMENTS}f", *values))
        pythons = {"w1": (sys.executable, "torch"), "w2": (sys.executable, "plain")}
        other = other_python()
        if other:
            pythons["w3"] = (other, "torch")
        names = ["w0", *pythons]
        hub = self.coordinator(config(rounds=ROUNDS, steps=4, workers=len(names), codec={"push": codec}))
        state = {name: self.folder / f"state-{name}" for name in names}
        workers = {"w0": self.start("w0", [PROGRAM, wanted, f"coordinator={hub.data}", "name=w0", f"state-dir={state['w0']}"])}
        for name, (python, kind) in pythons.items():
            workers[name] = self.start(name, [python, "-B", HERE / "fixed_worker.py", wanted, hub.data, name, state[name], kind])
        for name, process in workers.items():
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"{name}.out"))
        first = push_of(state["w0"])
        self.assertEqual(first[1], ROUNDS - 1)
        self.assertTrue(any(first[2]), "a payload of zeros shows nothing")
        for name in pythons:
            self.assertEqual(push_of(state[name]), first, name)
        return first

    def test_fp32(self):
        payload = self.check("fp32")[2]
        self.assertGreaterEqual(len(payload), 4 * ELEMENTS)

    def test_e3m0(self):
        _, _, payload, residual = self.check("e3m0")
        self.assertLess(len(payload), 4 * ELEMENTS / 6)
        self.assertTrue(any(residual), "without a loss in the encoding its residual shows nothing")

    def test_int4(self):
        self.assertTrue(any(self.check("int4")[3]))


if __name__ == "__main__":
    unittest.main()
