"""A run of real programs for the tests of the Python package: a coordinator with `model: external` on free ports, and workers.

Environment: ATOLL_TEST_BIN (folder of the programs), ATOLL_LIBRARY, ATOLL_ENGINE; run_tests.py sets them.
"""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))

PATIENCE_S = 120  # for anything that must happen; never a measurement


def config(rounds=3, steps=4, workers=1, batch=3, learning_rate=0.1, model="external", **sections):
    """A run in YAML. `sections`: replace or extend whole sections."""
    run = {
        "run": {"name": "python-test", "workers": workers, "rounds": rounds},
        "model": model,
        "data": {"mode": "local"},
        "inner": {"steps": steps, "learning_rate": learning_rate, "min_learning_rate_ratio": 1, "batch": batch},
        "outer": {"optimizer": "nesterov", "learning_rate": 0.7, "momentum": 0.9},
    }
    for name, values in sections.items():
        run[name] = {**run.get(name, {}), **values} if isinstance(values, dict) and isinstance(run.get(name), dict) else values
    return "".join(f"{name}: {yaml(values)}\n" for name, values in run.items())


def yaml(value):
    """Flow style, without quotes: the names of settings would be text in quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(item)}" for key, item in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def python_environment(**more):
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{HERE}", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
            "PYTHONDONTWRITEBYTECODE": "1", **more}


class Coordinator:
    """atoll-coordinator in a folder; it may be stopped and started again on its ports."""

    def __init__(self, folder, text, *more):
        self.folder, self.programs = pathlib.Path(folder), pathlib.Path(os.environ["ATOLL_TEST_BIN"])
        (self.folder / "run.yaml").write_text(text)
        self.more, self.process, self.data, self.admin = more, None, "127.0.0.1:0", "127.0.0.1:0"

    def start(self):
        ports = self.folder / "ports.json"
        ports.unlink(missing_ok=True)
        with open(self.folder / "coordinator.log", "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", self.programs / "atoll-coordinator", "--config", self.folder / "run.yaml", "--data-dir",
                 self.folder / "coordinator", "--listen", self.data, "--admin-listen", self.admin, "--metrics-listen", "", "--web-listen",
                 "", "--port-file", ports, "--log-format", "json", *self.more], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: ports.exists() or self.process.poll() is not None, "the coordinator to serve")
        if not ports.exists():
            raise AssertionError(f"the coordinator ended with {self.process.returncode}: {self.log_end()}")
        found = json.loads(ports.read_text())
        self.data, self.admin = found["data"], found["admin"]
        return self

    def stop(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)

    def log_end(self):
        return (self.folder / "coordinator.log").read_text()[-3000:]

    def ctl(self, *arguments):
        done = subprocess.run([self.programs / "atollctl", "--admin", self.admin, "--coordinator", self.data, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise AssertionError(f"atollctl {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.ctl("status", "--json"))

    def tokens(self):
        return int(self.status()["committed_tokens"])

    def head(self):
        return max((int(fragment["version"]) for fragment in self.status().get("fragments", [])), default=0)

    def metrics(self):
        """Points, from the round records: name, worker, version, value."""
        return [json.loads(line) for line in self.ctl("metrics", "export", "--format", "jsonl").splitlines()]

    def contributed_steps(self, fragment=0):
        """{version: {worker: steps that its contribution counts for}} from the round records."""
        name = f"fragment/{fragment}/worker/steps" if fragment else "worker/steps"
        found = {}
        for point in self.metrics():
            if point["name"] == name:
                found.setdefault(int(point["version"]), {})[point["worker"]] = int(point["value"])
        return found

    def contributors(self):
        """{version: [worker, ...]} from the round records of fragment 0, a worker as often as it counted."""
        found = {}
        for point in self.metrics():
            if point["name"] == "worker/steps":
                found.setdefault(int(point["version"]), []).append(point["worker"])
        return found


def wait_for(done, what, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)


def push_of(state_dir, fragment=0):
    """(codec, base, payload, residual) of the last push, from the file that client/sync/worker_checkpoint.cc writes. Without a loss in the
    encoding the residual is empty."""
    data = (pathlib.Path(state_dir) / f"progress/push-{fragment}").read_bytes()
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


def engine_of(parent):
    """The process id of the engine that `parent` started."""
    for path in pathlib.Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                stat = (path / "stat").read_text()
            except OSError:
                continue
            name, rest = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2:].split()
            if name.startswith("atoll-engine") and int(rest[1]) == parent:
                return int(path.name)
    raise AssertionError("no engine runs")


class RunTest(unittest.TestCase):
    """A test with a folder of its own, and a coordinator where it asks for one."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes = []
        self.addCleanup(self._end_processes)

    def coordinator(self, text=None, *more, **settings):
        self.hub = Coordinator(self.folder, text or config(**settings), *more).start()
        self.addCleanup(self.hub.stop, signal.SIGKILL)
        return self.hub

    def fresh(self):
        """A new folder, and no coordinator: for the next case of a test with several."""
        self.doCleanups()
        self.setUp()

    def options(self, name="w0", **more):
        """Arguments of atoll.join."""
        return {"name": name, "state_dir": self.folder / f"state-{name}", "progress": False,
                "log_file": self.folder / f"{name}.log", **more}

    def spawn(self, script, *arguments, log="worker.log", session=False, **environment):
        """A Python process of tests/python, which ends with this one. `session`: in a process group of its own."""
        with open(self.folder / log, "ab") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", HERE / script, *map(str, arguments)],
                                       stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=python_environment(**environment), start_new_session=session)
        self.processes.append(process)
        return process

    def need_native(self):
        """Skips the test where the programs that need LibTorch are not built."""
        for name in ("atoll-worker", "atoll-data"):
            if not (pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / name).exists():
                self.skipTest(f"{name} is not built")

    def tokenize(self, folder, texts):
        subprocess.run([pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-data", "tokenize", "--out", folder, *texts], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)

    def start_native(self, hub, name, tokens, state_dir, log, device="cpu"):
        """atoll-worker, which ends with this process."""
        with open(log, "ab") as out:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", hub.programs / "atoll-worker", "--coordinator", hub.data, "--name", name, "--data", tokens,
                 "--state-dir", state_dir, "--threads", "1", "--device", device], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        self.processes.append(process)
        return process

    def log(self, name="worker.log"):
        path = self.folder / name
        return path.read_text()[-4000:] if path.exists() else ""

    def _end_processes(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
