"""A real coordinator for tests of atollctl, and what is wrong with what atollctl did there."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time


class ServedRun:
    def __init__(self, programs, folder, config, *more):
        """`more`: arguments of the coordinator."""
        self.programs, self.folder, self.complaints = programs, folder, []
        (folder / "run.yaml").write_text(config)
        with open(folder / "log", "wb") as log:
            self.coordinator = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", programs / "atoll-coordinator", "--config", folder / "run.yaml",
                 "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
                 "--metrics-listen", "", "--web-listen", "", "--port-file", folder / "ports", *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not (folder / "ports").exists():
            if self.coordinator.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.02)
        ports = json.loads((folder / "ports").read_text())
        self.data, self.admin = ports["data"], ports["admin"]
        self.token = ["--token-file", str(folder / "data/access/admin.token")]
        self.there = ["--admin", self.admin, "--coordinator", self.data, *self.token]  # of atollctl

    def end(self):
        """As an operator would."""
        self.coordinator.terminate()
        if self.coordinator.wait(60) != 0:
            self.complaints.append(f"the coordinator ended with {self.coordinator.returncode}")

    def kill(self):
        self.coordinator.kill()
        self.coordinator.wait()


def run_parts(prefix, start, parts):
    """The exit code of a test whose argument is the folder of the programs. `start(programs, folder)` returns its ServedRun."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        run = start(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        try:
            for part in parts:
                begun = time.monotonic()
                part(run)
                print(f"{part.__name__}: {time.monotonic() - begun:.1f} s")
            run.end()
        finally:
            run.kill()
    for complaint in run.complaints:
        print(complaint, file=sys.stderr)
    return 1 if run.complaints else 0
