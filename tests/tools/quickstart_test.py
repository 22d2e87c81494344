#!/usr/bin/env python3
"""scripts/quickstart.sh, stopped and continued: what it prints, which ports it takes, which options it refuses.

Usage: quickstart_test.py BIN SOURCE

Runs the script of SOURCE in a folder of its own, with the programs of BIN in place of a build, and a tiny model.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
DEFAULTS = {"data": 7600, "admin": 7601, "metrics": 7602, "web": 7604}
CONFIG = """
run:
  name: quickstart
  workers: 2
  rounds: 4
model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner:
  steps: 2
  learning_rate: 1e-3
  warmup_steps: 1
  batch: 2
"""
MANY = "100000"  # rounds, so that only a signal ends the run


def port_of(address):
    return int(address.rsplit(":", 1)[1])


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("scripts", "configs", "build/release", "path"):
            (self.folder / name).mkdir(parents=True)
        for name in ("quickstart.sh", "lib.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.folder / "scripts")
        (self.folder / "configs/quickstart.yaml").write_text(CONFIG)
        (self.folder / "build/release/bin").symlink_to(BIN)
        (self.folder / "path/cmake").write_text("#!/bin/sh\n")
        (self.folder / "path/cmake").chmod(0o755)
        (self.folder / "text").write_text("the quick brown fox jumps over the lazy dog. " * 400)

    def start(self, *arguments):
        environment = dict(os.environ, PATH=f"{self.folder / 'path'}:{os.environ['PATH']}", OMP_NUM_THREADS="1")
        with open(self.folder / "output", "w") as output:
            process = subprocess.Popen(["scripts/quickstart.sh", "--no-setup", *arguments], cwd=self.folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        return process.wait(100)

    def output(self):
        return (self.folder / "output").read_text()

    def wait_for(self, process, pattern):
        until = time.monotonic() + 120
        while not re.search(pattern, self.output(), re.M):
            self.assertLess(time.monotonic(), until, self.output())
            self.assertIsNone(process.poll(), self.output())
            time.sleep(0.1)

    def ports(self):
        text = json.loads((self.folder / "run/quickstart/ports.json").read_text())
        return {name: port_of(text[name]) for name in DEFAULTS}

    def run_until_trained(self, *arguments):
        """(ports, output) of a run that is stopped by a signal after its first line of training."""
        process = self.start(*arguments)
        self.wait_for(process, r"^training: version [1-9]")
        ports = self.ports()
        self.assertEqual(self.end(process), 130, self.output())
        self.assertNotIn("interrupted", self.output())
        return ports, self.output()

    def test_stopped_and_continued(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        try:
            taken.bind(("127.0.0.1", DEFAULTS["metrics"]))
            taken.listen()
        except OSError:
            pass  # another program has it, which is as good
        first, output = self.run_until_trained("--text", "text", "--workers", "2", "--rounds", MANY)
        for name, usual in DEFAULTS.items():
            said = f"Another program uses port {usual} ({name})" in output
            self.assertEqual(first[name] != usual, said, output)
        self.assertNotEqual(first["metrics"], DEFAULTS["metrics"])
        moved = any(first[name] != DEFAULTS[name] for name in ("data", "admin"))
        line = f"export ATOLL_COORDINATOR=127.0.0.1:{first['data']} ATOLL_ADMIN=127.0.0.1:{first['admin']}"
        self.assertEqual(line in output, moved, output)
        self.assertRegex(output, rf"{MANY} rounds with 2 workers: [\d.]+[kMG]? tokens. These tokens end the run")
        self.assertNotIn("coordinator away", output)

        refused = self.start("--rounds", "3")
        self.assertEqual(refused.wait(100), 2, self.output())
        self.assertIn("has 100000 rounds and cannot get fewer", self.output())
        self.assertIn("--fresh", self.output())

        taken.close()
        again, output = self.run_until_trained()
        self.assertEqual(again, first, output)
        self.assertNotIn("first training loss", output)
        self.assertNotIn("coordinator away", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
