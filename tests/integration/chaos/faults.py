"""What is done to workers: one seeded stream of faults, each with its end."""
import os
import random
import signal
import time

import link

KINDS = ["kill", "kill", "freeze", "cut", "stall", "slow"]


class Faults:
    """tick() is called often; it ends what is due and begins what is due. Times are of time.monotonic()."""

    def __init__(self, run, seed, every, longest, at_once):
        self.run = run
        self.rng = random.Random(seed)
        self.every = every      # seconds between two beginnings, from and to
        self.longest = longest  # seconds of one fault
        self.at_once = at_once  # so many victims at a time at most
        self.active = {}        # name -> (kind, end)
        self.next = time.monotonic()
        self.done = []          # {name, kind, begin, end}

    def tick(self):
        now = time.monotonic()
        for name, (kind, end) in list(self.active.items()):
            if now >= end:
                self.finish(name, kind)
        if now < self.next or len(self.active) >= self.at_once:
            return
        free = [name for name in self.run.names if name not in self.active and self.run.pid_of(name) is not None]
        if free:
            self.begin(self.rng.choice(free), self.rng.choice(KINDS), now)
        self.next = now + self.rng.uniform(*self.every)

    def begin(self, name, kind, now):
        pid = self.run.pid_of(name)
        if pid is None:
            return
        end = now + self.rng.uniform(0.5, self.longest)
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
            end = now
        elif kind == "freeze":
            os.kill(pid, signal.SIGSTOP)
        else:
            self.run.links.by_name[name].set_mode(kind)
        self.active[name] = (kind, end)
        self.done.append({"name": name, "kind": kind, "begin": time.time(), "end": time.time() + end - now})

    def finish(self, name, kind):
        if kind == "freeze":
            pid = self.run.pid_of(name)
            if pid is not None:
                os.kill(pid, signal.SIGCONT)
        elif kind != "kill":
            self.run.links.by_name[name].set_mode(link.PASS)
        del self.active[name]

    def finish_all(self):
        for name, (kind, _) in list(self.active.items()):
            self.finish(name, kind)
