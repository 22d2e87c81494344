"""What happens to the processes of the soak, one thing after another."""
import os
import signal
import time

KINDS = ("kill worker", "freeze worker", "kill worker", "freeze worker", "kill launched", "end coordinator", "kill coordinator")
EVERY_S = (1.5, 4)
FROZEN_S = (0.5, 6)
AWAY_S = (0, 1.5)


class Faults:
    def __init__(self, run, rng):
        self.run, self.rng = run, rng
        self.frozen = {}  # pid -> when it goes on
        self.done = []    # (kind, whom)
        self.left = []    # of this turn: each kind comes as often as it stands above
        self.next = time.monotonic() + 1

    def tick(self):
        now = time.monotonic()
        for pid, until in list(self.frozen.items()):
            if now >= until:
                self.thaw(pid)
        if now < self.next:
            return
        if not self.left:
            self.left = self.rng.sample(KINDS, len(KINDS))
        self.begin(self.left.pop())
        self.next = time.monotonic() + self.rng.uniform(*EVERY_S)

    def begin(self, kind):
        run = self.run
        if kind.endswith("coordinator"):
            sign = signal.SIGTERM if kind == "end coordinator" else signal.SIGKILL
            code = run.restart_coordinator(sign, self.rng.uniform(*AWAY_S))
            if sign == signal.SIGTERM and code != 0:
                raise RuntimeError(f"the coordinator was told to end, and ended with {code}: {run.log_end()}")
            self.done.append((kind, ""))
            return
        if kind == "kill launched":
            launched = sorted(run.launched().items())
            if launched:
                name, pid = self.rng.choice(launched)
                run.kill_launched(name, pid)
                self.done.append((kind, name))
            return
        names = [name for name in run.running() if run.workers_by_name[name].pid not in self.frozen]
        if len(names) < 3:
            return
        name = self.rng.choice(names)
        pid = run.workers_by_name[name].pid
        if kind == "kill worker":
            run.tell(name, -signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGSTOP)
            self.frozen[pid] = time.monotonic() + self.rng.uniform(*FROZEN_S)
        self.done.append((kind, name))

    def thaw(self, pid):
        del self.frozen[pid]
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def finish_all(self):
        for pid in list(self.frozen):
            self.thaw(pid)
