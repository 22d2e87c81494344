"""The run of the soak: its processes, and who of them was told to end."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from command_list import Given  # noqa: E402
from hand_run import HandRun  # noqa: E402

DEADLINE_S = 8
STALENESS = 1  # versions: a contribution that comes so late is folded into the open round
BY_HAND, LAUNCHED = 6, 2
EXIT_BANNED = 5
DRAINED = (0, 8)  # 8: its last push came too late, which it says
PATIENCE_S = 60


class Besieged(HandRun):
    ctl_patience_s = 900  # `verify` recomputes a thousand versions, on a machine that may be busy

    def __init__(self, folder, programs, config, tokens):
        super().__init__(folder, programs, config)
        self.tokens = tokens
        self.names = [f"h{i}" for i in range(BY_HAND)]
        self.told = {}      # name of a worker that was told to end -> the exit codes that it may have
        self.banned = set()
        self.absences = []  # [begin, end] in seconds since 1970: the coordinator away, or the run paused
        self.killed = collections.Counter()  # workers of the launcher that were killed here
        self.given = Given()
        self.watch = None

    def launch_coordinator(self):
        self.start_coordinator("--launcher", "process", "--launch-workers", str(LAUNCHED), "--worker-command",
                               self.programs / "atoll-worker", f"--worker-arg=--data={self.tokens}",
                               "--worker-arg=--threads=1", "--worker-arg=--device=cpu")

    def ctl(self, *arguments):
        text = super().ctl(*arguments)
        if text is not None:
            self.given.note(arguments)
        return text

    def begin(self):
        self.launch_coordinator()
        for name in self.names:
            self.start_worker(name, self.tokens)
        self.wait_for(lambda: self.head() >= 1, PATIENCE_S, "the first version")
        self.watch = self.spawn("watch.log", self.programs / "atollctl", "--admin", self.admin, "--coordinator", self.data,
                                "watch", "--json", "--until-finished")
        self.given.note(["watch"])

    def restart_coordinator(self, sign, away):
        """Its exit code; `away`: seconds until it is started again."""
        begin = time.time()
        code = self.stop_coordinator(sign)
        time.sleep(away)
        self.launch_coordinator()
        # Those that pause for it need some seconds to come back.
        self.absences.append((begin, time.time() + 5))
        return code

    def tell(self, name, *codes):
        self.told[name] = codes

    def look(self, complaints):
        """Who ended was told to; whoever may come back is started again."""
        for name, process in self.workers_by_name.items():
            if process.poll() is None or (name in self.banned and name not in self.told):
                continue
            expected = self.told.pop(name, ())
            if process.returncode not in expected:
                complaints.append(f"{name} ended with {process.returncode} (may be {expected}): {self.worker_log_end(name)}")
            elif name not in self.banned:
                self.start_worker(name, self.tokens)
        if self.watch is not None and self.watch.poll() is not None:
            complaints.append(f"atollctl watch ended with {self.watch.returncode}: {(self.folder / 'watch.log').read_text()[-400:]}")
        if self.coordinator.poll() is not None:
            complaints.append(f"the coordinator ended with {self.coordinator.returncode}: {self.log_end()[-1500:]}")

    def running(self):
        """Those that a command or a fault may be about."""
        return [name for name in self.names if name not in self.told and name not in self.banned
                and self.workers_by_name[name].poll() is None]

    def launched(self):
        """The processes of the launcher's workers, by name."""
        text = self.ctl("launcher", "--json")
        return {worker["name"]: int(worker["handle"]) for worker in json.loads(text)["workers"]
                if worker["state"] == "running" and worker.get("handle", "").isdigit()} if text else {}

    def kill_launched(self, name, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            self.killed[name] += 1
        except ProcessLookupError:
            pass

    def settle(self, complaints):
        """Two more versions come when nothing disturbs them."""
        head, until = self.head(), time.monotonic() + PATIENCE_S
        while self.head() < head + 2:
            self.look(complaints)
            if complaints or time.monotonic() > until:
                complaints.append(f"no two versions came of {head} once it was quiet: {self.status()}")
                return
            time.sleep(0.1)

    def stop_run(self, complaints):
        """As an operator would: the open round closes, and the workers end with the run."""
        if self.ctl("run", "stop", "--yes") is None:
            complaints.append(f"run stop failed: {self.complaint}")
        for name, process in self.workers_by_name.items():
            try:
                code, expected = process.wait(PATIENCE_S), self.told.get(name, (0, EXIT_BANNED) if name in self.banned else (0,))
                if code not in expected:
                    complaints.append(f"{name} ended with {code} at the end of the run: {self.worker_log_end(name)}")
            except subprocess.TimeoutExpired:
                complaints.append(f"{name} does not end with the run: {self.worker_log_end(name)}")
        try:
            if self.watch.wait(PATIENCE_S) != 0:
                complaints.append(f"atollctl watch ended with {self.watch.returncode}")
        except subprocess.TimeoutExpired:
            complaints.append("atollctl watch --until-finished goes on after the end of the run")

    def end(self, complaints):
        code = self.stop_coordinator(signal.SIGTERM)
        if code != 0:
            complaints.append(f"the coordinator ended with {code}: {self.log_end()}")

    def kill_all(self):
        super().kill_all()
        if self.watch is not None and self.watch.poll() is None:
            self.watch.kill()
            self.watch.wait()
