"""A coordinator and workers of the real programs, the workers behind a link of a bandwidth and a latency."""
import json
import os
import subprocess
import time

from metrics_page import scrape  # noqa: F401, used by the runs
from real_run import RealRun
from shaped_link import ShapedLink

def by_use(samples, name, **where):
    """Seconds by the label `use`, of the series with these labels."""
    seconds = {}
    for (series, labels), value in samples.items():
        labels = dict(labels)
        if series == name and all(labels.get(key) == wanted for key, wanted in where.items()):
            seconds[labels["use"]] = seconds.get(labels["use"], 0) + value
    return seconds


def between(before, after):
    return {use: after[use] - before.get(use, 0) for use in after}


class ShapedRun(RealRun):
    """To be used as a context; ends what it started."""

    def __init__(self, folder, programs, config):
        super().__init__(folder, programs, config)
        self.processes = {}
        self.link = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.processes.values():
            worker.kill()
            worker.wait()
        if hasattr(self, "coordinator"):
            self.kill()
        if self.link is not None:
            self.link.close()

    def start(self, tokens, names, megabits, delay_ms):
        self.start_coordinator()
        self.start_workers(tokens, names, megabits, delay_ms)

    def start_workers(self, tokens, names, megabits, delay_ms):
        self.link = ShapedLink(self.data, megabits, delay_ms)
        for name in names:
            self.processes[name] = self.begin(name, "atoll-worker", "--coordinator", f"127.0.0.1:{self.link.port}", "--name", name,
                                            "--data", tokens, "--state-dir", self.folder / name, "--threads", "1", "--device",
                                            "cpu", "--metrics-listen", "127.0.0.1:0", "--log-format", "json")

    def start_coordinator(self):
        ports = self.folder / "ports.json"
        self.coordinator = self.begin("coordinator", "atoll-coordinator", "--config", self.folder / "run.yaml", "--data-dir",
                                      self.folder / "data", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
                                      "--metrics-listen", "127.0.0.1:0", "--web-listen", "", "--log-format", "json",
                                      "--port-file", ports)
        self.wait_for(ports.exists, 60, "the coordinator to serve")
        found = json.loads(ports.read_text())
        self.admin, self.data, self.metrics_address = found["admin"], found["data"], self.endpoint("coordinator")

    def begin(self, name, program, *arguments):
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        with open(self.folder / f"{name}.log", "wb") as log:
            return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.programs / program, *map(str, arguments)],
                                    stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def log_of(self, name):
        lines = (self.folder / f"{name}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def endpoint(self, name):
        """Of a program's metrics, from its log."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in self.log_of(name):
                if line.get("url", "").endswith("/metrics"):
                    return line["url"].split("//")[1].split("/")[0]
            time.sleep(0.1)
        raise RuntimeError(f"{name} shows no metrics: {(self.folder / f'{name}.log').read_text()[-2000:]}")
