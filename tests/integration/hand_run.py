"""A coordinator and workers that are processes of this script: nobody starts again what ends."""
import json
import os
import signal
import subprocess

from real_run import RealRun


class HandRun(RealRun):
    """The coordinator may be ended and started again on its ports and its directory; the workers stay."""

    def __init__(self, folder, programs, config, worker_program=None):
        super().__init__(folder, programs, config)
        self.worker_program = worker_program or self.programs / "atoll-worker"
        self.workers_by_name = {}  # name -> process
        self.asked = set()         # names of those that were told to end
        self.starts = 0

    def spawn(self, log, *command):
        with open(self.folder / log, "ab") as out:
            return self.launch(out, *command)

    @staticmethod
    def launch(out, *command):
        """`out`: a file or descriptor."""
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        # Should this script be killed, the kernel kills what it has started.
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=out, stderr=out,
                                stdin=subprocess.DEVNULL, env=environment)

    def start_coordinator(self, *more):
        """The first time on free ports, later on the same."""
        data, admin = (self.data, self.admin) if self.starts else ("127.0.0.1:0", "127.0.0.1:0")
        ports = self.folder / "ports.json"
        ports.unlink(missing_ok=True)
        self.starts += 1
        self.coordinator = self.spawn("coordinator.log", self.programs / "atoll-coordinator", "--config", self.folder / "run.yaml",
                                      "--data-dir", self.folder / "coordinator", "--listen", data, "--admin-listen", admin,
                                      "--metrics-listen", "", "--web-listen", "", "--port-file", ports, "--log-format", "json", *more)
        self.wait_for(ports.exists, 60, "the coordinator to serve")
        found = json.loads(ports.read_text())
        self.admin, self.data = found["admin"], found["data"]
        self.metrics_address, self.web_address = found.get("metrics"), found.get("web")

    def stop_coordinator(self, sign=signal.SIGTERM):
        """Its exit code."""
        self.coordinator.send_signal(sign)
        return self.coordinator.wait(60)

    def start_worker(self, name, tokens, *more):
        process = self.spawn(f"{name}.log", self.worker_program, "--coordinator", self.data, "--name", name, "--data", tokens,
                             "--state-dir", self.folder / f"state-{name}", "--threads", "1", "--device", "cpu",
                             "--log-format", "json", *more)
        self.workers_by_name[name] = process
        self.asked.discard(name)
        return process

    def worker_log_end(self, name):
        return (self.folder / f"{name}.log").read_text()[-1500:]

    def contributed(self):
        """Of every version the workers whose contributions it is made of, from the round records."""
        workers = {}
        for point in self.metrics():
            if point["name"] == "worker/steps":
                workers.setdefault(int(point["version"]), set()).add(point["worker"])
        return workers

    def kill_all(self):
        for process in [*self.workers_by_name.values(), getattr(self, "coordinator", None)]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
