#!/usr/bin/env python3
"""scripts/quickstart.sh, stopped, continued and extended: what it prints, deletes, refuses, and which ports it takes.
The README's block "By hand" where the coordinator cannot start.

Usage: quickstart_test.py BIN SOURCE

Runs the script of SOURCE in a folder of its own, with the programs of BIN in place of a build, and a tiny model.
"""
import fcntl
import json
import os
import pathlib
import re
import shlex
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


NOISE = re.compile(r"Killed|Terminated|line \d+:|exit code \d+ from|Traceback")


def processes_of(text):
    """{process: arguments} of those with TEXT in an argument. In another network namespace the same address is another run's."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "ns/net") != os.readlink("/proc/self/ns/net"):
                continue
            arguments = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(text in argument for argument in arguments):
            found[int(folder.name)] = arguments
    return found


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
        shutil.copy(SOURCE / "CMakePresets.json", self.folder)
        (self.folder / "configs/quickstart.yaml").write_text(CONFIG)
        (self.folder / "build/release/bin").symlink_to(BIN)
        (self.folder / "path/cmake").write_text("#!/bin/sh\n")
        (self.folder / "path/cmake").chmod(0o755)
        # Not all of it is UTF-8, like the dictionary that the quickstart downloads.
        (self.folder / "text").write_bytes(b"the quick brown fox jumps over the lazy dog\x92s back. " * 400)

    def start(self, *arguments, cwd=None, **more):
        environment = dict(os.environ, PATH=f"{self.folder / 'path'}:{os.environ['PATH']}", OMP_NUM_THREADS="1", **more)
        with open(self.folder / "output", "w") as output:
            process = subprocess.Popen([self.folder / "scripts/quickstart.sh", "--no-setup", *arguments],
                                       cwd=cwd or self.folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        return process.wait(100)

    def output(self):
        return (self.folder / "output").read_text(errors="replace")  # a model of bytes writes any

    def wait_for(self, process, pattern):
        until = time.monotonic() + 120
        while not re.search(pattern, self.output(), re.M):
            self.assertLess(time.monotonic(), until, self.output())
            self.assertIsNone(process.poll(), self.output())
            time.sleep(0.1)

    def ports_text(self):
        return json.loads((self.folder / "run/quickstart/ports.json").read_text())

    def ports(self):
        text = self.ports_text()
        return {name: port_of(text[name]) for name in DEFAULTS}

    def run_until_trained(self, *arguments):
        """(ports, output) of a run that is stopped by a signal after its first line of training."""
        process = self.start(*arguments)
        self.wait_for(process, r"^training: version [1-9]")
        ports = self.ports()
        self.assertEqual(self.end(process), 130, self.output())
        self.assertNotIn("interrupted", self.output())
        return ports, self.output()

    def atollctl(self, *arguments):
        """What it prints, of the run in the default folder."""
        return subprocess.run([BIN / "atollctl", "--admin", self.ports_text()["admin"], *arguments], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def ended(self, code, *arguments, **more):
        """The output of a run that ends with CODE."""
        self.assertEqual(self.start(*arguments, **more).wait(200), code, self.output())
        return self.output()

    def test_a_folder_of_others_is_refused(self):
        home = self.folder / "home"
        home.mkdir()
        book = home / "book.txt"
        book.write_text("a book")
        (home / "link").symlink_to(home)
        for arguments in ((), ("--fresh",), ("--text", str(book)), ("--text", str(self.folder / "text"))):
            for place in (home, home / "link"):
                output = self.ended(2, "--dir", str(place), *arguments)
                self.assertIn(f"{home} has files and was not made by the quickstart", output)
        (home / "logs").mkdir()  # one name that the quickstart uses makes it no run of the quickstart
        self.ended(2, "--dir", "home", "--fresh")
        self.assertEqual(sorted(path.name for path in home.iterdir()), ["book.txt", "link", "logs"])
        self.assertIn("is not a folder", self.ended(2, "--dir", str(book)))
        self.assertIn("is a folder; name the text files in it", self.ended(2, "--text", "home"))

    def no_downloads(self):
        for name, text in (("apt-get", '[ "$1" = update ]'), ("sudo", 'exec "$@"')):
            (self.folder / "path" / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.folder / "path" / name).chmod(0o755)

    def test_a_text_that_cannot_be_downloaded_is_told_before_the_build(self):
        self.no_downloads()
        output = self.ended(1)
        self.assertRegex(output, "cannot download dict-gcide, the text that a run learns if it gets no other. On other text: .*--text FILE")
        self.assertNotIn("Build", output)
        self.assertFalse((self.folder / "run/quickstart/logs/build.log").exists())

    def test_fresh_keeps_the_run_when_no_text_can_be_fetched(self):
        place = self.folder / "run/quickstart"
        (place / "coordinator").mkdir(parents=True)
        for name in (".lock", "coordinator/state", "model.safetensors"):
            (place / name).touch()
        self.no_downloads()
        self.assertIn("cannot download dict-gcide", self.ended(1, "--fresh"))
        self.assertTrue((place / "coordinator/state").exists())
        self.assertTrue((place / "model.safetensors").exists())

    def test_a_text_that_would_be_deleted_is_refused(self):
        place = self.folder / "run/quickstart"
        book = place / "tokens/book.txt"
        book.parent.mkdir(parents=True)
        book.write_text("a book")
        (place / ".lock").touch()  # as a quickstart left it that made no mark
        (self.folder / "alias").symlink_to(book)
        for text in ("run/quickstart/tokens/book.txt", "alias"):
            self.assertIn(f"--fresh deletes {place}/tokens", self.ended(2, "--text", text))
        self.assertEqual(book.read_text(), "a book")

    def test_deletes_its_own_files_and_works_where_its_user_stands(self):
        """Through a link, with a space in the folder's name, with an operator's credentials in the environment."""
        place, stand = self.folder / "qs dir", self.folder / "stand"
        (place / "coordinator").mkdir(parents=True)
        stand.mkdir()
        (stand / "link").symlink_to(place)
        for name in (".lock", "coordinator/stale", "model.safetensors", "finished"):
            (place / name).touch()
        (place / "rounds").write_text("24\n")
        (stand / "text").write_text("pack my box with five dozen liquor jugs. " * 300)  # the repository has another
        credentials = {"ATOLL_TLS_CA": "/none/ca.pem", "ATOLL_TLS_CERT": "/none/c.pem", "ATOLL_TLS_KEY": "/none/k.pem",
                       "ATOLL_TOKEN_FILE": "/none/token", "ATOLL_ADMIN_TOKEN_FILE": "/none/admin",
                       "ATOLL_WORKER_TOKEN_FILE": "/none/worker", "ATOLL_ADMIN": "127.0.0.1:1", "ATOLL_COORDINATOR": "127.0.0.1:1"}
        # Six rounds, and the file has four: after the end, as many are added as the run was made with.
        output = self.ended(0, "--dir", "link", "--fresh", "--text", "text", "--workers", "1", "--rounds", "6", cwd=stand,
                            **credentials)
        self.assertFalse((place / "coordinator/stale").exists(), output)
        tokens = sum(int(number) for number in re.findall(r"^(?:training|held out) +(\d+) tokens", output, re.M))
        self.assertEqual(tokens, (stand / "text").stat().st_size, output)
        self.assertIn("6 rounds with 1 worker:", output)
        self.assertNotRegex(output, NOISE)
        hint = shlex.split(re.search(r"train further +(.*)", output)[1])
        self.assertEqual(hint, [str(self.folder / "scripts/quickstart.sh"), "--dir", str(place)])

        (place / "notes.txt").write_text("mine")
        output = self.ended(0, *hint[1:], cwd="/")
        self.assertIn("rounds           6 -> 12", output)
        self.assertIn("12 rounds with 1 worker:", output)
        self.assertNotIn("6 rounds of", output)
        for fewer in ("5", "11"):
            output = self.ended(2, *hint[1:], "--rounds", fewer)
            self.assertIn("has 12 rounds and cannot get fewer", output)
            self.assertNotIn("==>", output)
        # Rounds of two workers: the finished run is where it was, at its last step and the lowest rate.
        output = self.ended(0, *hint[1:], "--workers", "2")
        self.assertIn("was planned for 1 worker; now it is for 2. Its token budget stays", output)
        self.assertIn("rounds           6 -> 12 (12 -> 24 inner steps; the run is at step 12)", output)
        self.assertIn("learning rate    0.0001 from now to the end, at step 24", output)
        self.assertIn("12 rounds with 2 workers", output)

        output = self.ended(2, "--dir", "link", "--text", "/none", cwd=stand)
        self.assertTrue((place / "model.safetensors").exists(), output)
        process = self.start("--dir", "link", "--fresh", "--text", "text", cwd=stand)
        self.wait_for(process, "^In a browser")
        self.end(process)
        self.assertFalse((place / "model.safetensors").exists(), self.output())
        self.assertEqual((place / "notes.txt").read_text(), "mine")

    def test_the_end_counts_the_workers_that_were_added_by_hand(self):
        process = self.start("--text", "text", "--workers", "1", "--rounds", MANY)
        self.wait_for(process, r"^training: version [1-9]")
        for command in ("workers add 2", "run stop --yes"):
            self.atollctl(*command.split())
        self.assertEqual(process.wait(100), 0, self.output())
        self.assertRegex(self.output(), r"(?m)^ +more workers +\S+ --workers 4$")

    def test_a_number_of_workers_is_newer_than_what_the_launcher_remembers(self):
        def launched():
            return json.loads(self.atollctl("--json", "launcher"))["target"]

        process = self.start("--text", "text", "--workers", "3", "--rounds", MANY)
        self.wait_for(process, r"^training: version [1-9]")
        self.atollctl("workers", "scale", "1")
        self.end(process)
        process = self.start("--text", "text")
        self.wait_for(process, r"^training: version [1-9]")
        self.assertEqual(launched(), 1)
        self.assertIn("'atollctl workers' has set this run to 1 worker. For another number: ./scripts/quickstart.sh --workers N", self.output())
        self.end(process)
        process = self.start("--text", "text", "--workers", "3")
        self.wait_for(process, r"^training: version [1-9].* 3 workers")
        self.assertEqual(launched(), 3)

    def test_kills_a_worker_that_runs(self):
        # Long rounds, so that the run does not end before its worker is killed.
        (self.folder / "configs/quickstart.yaml").write_text(CONFIG.replace("  steps: 2\n", "  steps: 1500\n"))
        process = self.start("--text", "text", "--workers", "2", "--rounds", "20")
        self.wait_for(process, r"^training: version [1-9]")
        self.atollctl("workers", "scale", "1")
        self.end(process)
        output = self.ended(0, "--text", "text", "--kill-a-worker")
        self.assertRegex(output, r"killed worker w0 \(process \d+, kill -9\) at version \d+\s+the launcher started worker w0 again")

    def test_waits_for_another_build_takes_other_ports_and_fails_quietly(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        try:
            taken.bind(("127.0.0.1", DEFAULTS["metrics"]))  # and does not listen: no look at the port shows that it is taken
        except OSError:
            pass
        with open(self.folder / "build/release/.quickstart.lock", "w") as build:
            fcntl.flock(build, fcntl.LOCK_EX)
            process = self.start("--text", "text", "--workers", "1", "--rounds", MANY)
            self.wait_for(process, "Another quickstart builds in build/release")
            self.assertNotIn("Built in", self.output())
        self.wait_for(process, "^In a browser")
        self.assertNotEqual(self.ports()["metrics"], DEFAULTS["metrics"])
        own = processes_of(str(self.folder / "run/quickstart"))
        coordinators = [number for number, arguments in own.items() if arguments[0].endswith("atoll-coordinator")]
        self.assertEqual(len(coordinators), 1, own)
        self.assertIn("--worker-arg=--expect-run=quickstart", own[coordinators[0]])
        os.kill(coordinators[0], signal.SIGKILL)
        self.assertEqual(process.wait(100), 1, self.output())
        self.assertIn("the coordinator died", self.output())
        self.assertNotRegex(self.output(), NOISE)

    def test_by_hand_starts_no_worker_when_the_coordinator_does_not_start(self):
        """The port belongs to somebody else's coordinator, which would take these workers for its own."""
        block = subprocess.run([sys.executable, "-B", SOURCE / "tests/docs/readme_blocks.py", "--print", "By hand"],
                               check=True, capture_output=True, text=True).stdout
        build, rest = block.split("\n", 1)
        self.assertIn("cmake --build", build)
        self.assertRegex(rest, r"atoll-worker --coordinator \S+ --expect-run small ")
        shutil.copy(SOURCE / "configs/small.yaml", self.folder / "configs")
        (self.folder / "docs/reference").mkdir(parents=True)
        for name in ("README.md", "docs/reference/page.md"):
            shutil.copy(SOURCE / "README.md", self.folder / name)
        place = self.folder / "atoll"
        place.mkdir()
        (place / "ports.json").write_text("{}")  # of an earlier start
        with socket.socket() as taken:
            try:
                taken.bind(("127.0.0.1", DEFAULTS["data"]))
            except OSError:
                pass
            for mode in (["-Eeo", "pipefail"], []):  # as the tests run it, and as in a shell where it was pasted
                result = subprocess.run(["bash", *mode, "-c", rest.replace("/tmp/atoll", str(place))], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
                self.assertNotEqual(result.returncode, 0, result.stdout)
                self.assertIn("7600 is in use by another process", result.stdout)
                self.assertEqual(list(place.glob("w*")), [])

    def version(self):
        """Of the run that was stopped last, by its own view."""
        return int(re.findall(r"^training: version (\d+)", self.output(), re.M)[-1])

    def test_wrong_usage_leaves_nothing_behind(self):
        output = self.ended(2, "--preset", "nope", "--dir", "new")
        self.assertIn("no such preset", output)
        self.assertIn(" release", output)
        self.assertFalse((self.folder / "build/nope").exists())
        self.assertFalse((self.folder / "new").exists())
        self.assertIn("did you mean --workers?", self.ended(2, "--wokers", "3"))
        self.assertIn("did you mean --fresh?", self.ended(2, "--frehs"))
        self.assertNotIn("did you mean", self.ended(2, "--zebra"))

    def test_nothing_outlives_a_killed_quickstart(self):
        process = self.start("--text", "text", "--workers", "1", "--rounds", MANY)
        self.wait_for(process, r"^training: version [1-9]")
        own = processes_of(str(self.folder))  # the script, the coordinator, its worker
        own |= {number: arguments for number, arguments in processes_of("watch").items() if "--until-finished" in arguments
                and any(self.ports_text()["admin"] in argument for argument in arguments)}
        self.assertGreaterEqual(len(own), 4, own)
        workers = [number for number, arguments in own.items() if arguments[0].endswith("atoll-worker")]
        environment = pathlib.Path(f"/proc/{workers[0]}/environ").read_bytes().split(b"\0")
        self.assertIn(b"OMP_WAIT_POLICY=passive", environment)
        process.kill()
        process.wait()
        until = time.monotonic() + 60  # a coordinator that ends waits for its worker
        left = lambda: processes_of(str(self.folder / "scripts")) | {n: a for n, a in own.items() if pathlib.Path(f"/proc/{n}").exists()}
        while left() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(left(), {})

    def test_tells_which_settings_another_number_of_workers_takes_back(self):
        process = self.start("--text", "text", "--workers", "1", "--rounds", MANY)
        self.wait_for(process, r"^training: version [1-9]")
        self.atollctl("config", "set", "outer.learning_rate=0.9")
        self.end(process)
        self.assertNotIn("takes back", self.run_until_trained("--text", "text")[1])
        output = self.run_until_trained("--text", "text", "--workers", "2")[1]
        told = re.findall(r"^the file changed, so it takes back .*$", output, re.M)
        self.assertEqual(len(told), 1, output)
        self.assertRegex(told[0], r" outer.learning_rate: 0.9 -> [\d.]+\. To restore .* outer.learning_rate=0.9`")

    def test_ends_when_no_worker_can_train(self):
        (self.folder / "short").write_text("hello")
        output = self.ended(1, "--text", "short")
        self.assertRegex(output, "no worker can train: .*tokens are too few for one sample")
        self.assertIn("--fresh --text FILE", output)
        self.assertNotRegex(output, NOISE)

    def test_stopped_and_continued(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        try:
            taken.bind(("127.0.0.1", DEFAULTS["metrics"]))
            taken.listen()
        except OSError:
            pass  # another program has it, which is as good
        first, output = self.run_until_trained("--text", "text", "--workers", "2", "--rounds", MANY)
        begin = self.version()
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

        (self.folder / "other").write_text("pack my box with five dozen liquor jugs. " * 400)
        output = self.ended(2, "--text", "other")
        self.assertIn("trains on another text", output)
        self.assertNotIn("==>", output)

        taken.close()
        again, output = self.run_until_trained("--text", "text")
        self.assertGreaterEqual(int(re.search(r"^training: version (\d+)", output, re.M)[1]), begin, output)
        self.assertEqual(again, first, output)
        self.assertNotIn("first training loss", output)
        self.assertNotIn("coordinator away", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
