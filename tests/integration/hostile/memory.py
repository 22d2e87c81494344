#!/usr/bin/python3
"""A coordinator under a memory limit while strangers begin messages on both ports and never end them.

The limit is a real cgroup's where this machine lets us make one (as root), else it is told to the program and held against
its resident memory. Two honest workers go on meanwhile: heartbeats, pulls, rounds. Honest
connections that do nothing are not ended, and new ones get in.

How long a round may take is measured at the same time: a second coordinator, which nobody floods, makes the same rounds
beside the first, on the same busy or idle machine.

Usage: memory.py --bin DIR [--limit-mib N] [--seconds N] [--without-flag]
Exit codes: 0 it lives and serves, 1 not, 77 a program or python3-grpcio is not there.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

try:
    import grpc
except ImportError:
    print("memory: python3-grpcio is not installed: skipped")
    sys.exit(77)

from bystanders import Bystanders
from coordinator import METHOD, Coordinator, GoodWorker

CONNECTIONS = 400
STREAMS = 4
MESSAGE_BYTES = (2 << 20) - 64
SERVED_WITHIN_S = 10  # on a machine that has nothing else to do
TIMES_SLOWER = 10     # than the coordinator that nobody floods, on any machine
ALIVE_WITHIN_S = 300  # a round that takes longer is none
BYSTANDERS = 20  # at each port
MODEL_VALUES = 1 << 18


class Cgroup:
    """A cgroup below ours, of version 1 or 2, with this much memory; None where we may not make one."""

    @staticmethod
    def make(limit_bytes):
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            v2 = controllers == ""
            if not v2 and "memory" not in controllers.split(","):
                continue
            root = pathlib.Path("/sys/fs/cgroup") if v2 else pathlib.Path("/sys/fs/cgroup/memory")
            limit = "memory.max" if v2 else "memory.limit_in_bytes"
            folder = root / path.lstrip("/") / f"atoll-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                (folder / limit).write_text(str(limit_bytes))
                return Cgroup(folder)
            except OSError:
                folder.rmdir()
        return None

    def __init__(self, folder):
        self.folder = folder

    @property
    def entrance(self):
        """The file that takes the numbers of processes."""
        return self.folder / "cgroup.procs"

    def remove(self):
        for _ in range(50):
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.1)


class Honest:
    """Rounds of two workers that contribute zeros, one after the other, until told to stop."""

    def __init__(self, coordinator):
        self.coordinator, self.workers = coordinator, begin_run(coordinator)
        self.rounds, self.longest, self.problem = 0, 0.0, None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._go_on)
        self.thread.start()

    def _go_on(self):
        try:
            while not self.stopped.is_set():
                self._round()
        except (grpc.RpcError, RuntimeError, OSError) as error:
            self.problem = str(error)[:2000]

    def _round(self):
        began = time.monotonic()
        base = [worker.pull() for worker in self.workers][-1]
        for worker in self.workers:
            worker.heartbeat()
            worker.push_zeros(base)
        self.coordinator.wait_for(lambda: self.workers[0].pull() > base, ALIVE_WITHIN_S, "the next version")
        self.rounds += 1
        self.longest = max(self.longest, time.monotonic() - began)

    def stop(self):
        self.stopped.set()
        self.thread.join()


def begin_run(coordinator):
    workers = [GoodWorker(coordinator, "good-0", MODEL_VALUES), GoodWorker(coordinator, "good-1", MODEL_VALUES)]
    for worker in workers:
        if worker.member.seed_granted:
            worker.seed()
    for worker in workers:
        worker.member = worker.join()
    return workers


def begin_flood(coordinator, seconds):
    """Whoever floods is another process, at other addresses than the honest."""
    ports = [(coordinator.address("data"), "127.0.0.2", METHOD + "Join"),
             (coordinator.address("admin"), "127.0.0.3", "/atoll.v1.Admin/GetStatus")]
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", pathlib.Path(__file__).with_name("flood.py"),
         json.dumps({"ports": ports, "connections": CONNECTIONS, "streams": STREAMS, "message_bytes": MESSAGE_BYTES,
                     "seconds": seconds})], stdout=subprocess.PIPE, text=True)


def under_flood(coordinator, calm, seconds, limit_mib):
    """`calm`: the coordinator that nobody floods."""
    peak, problems = 0.0, []
    honest, control = Honest(coordinator), Honest(calm)
    bystanders = Bystanders(coordinator, BYSTANDERS)
    began = time.monotonic()
    flood = begin_flood(coordinator, seconds)
    try:
        while flood.poll() is None:
            if coordinator.process.poll() is not None:
                raise RuntimeError(f"the coordinator ended with {coordinator.process.returncode}")
            peak = max(peak, coordinator.rss_mib())
            bystanders.newcomers()
            bystanders.look()
            time.sleep(0.01)
        sent, ended = json.loads(flood.stdout.read())
        print(f"{sent / (1 << 20):.0f} MiB of incomplete messages over {CONNECTIONS} connections to each of two ports in "
              f"{seconds} s; {ended} connections were ended; at most {peak:.0f} of {limit_mib} MiB", flush=True)
        coordinator.status()
    except (RuntimeError, OSError, AttributeError) as error:  # of a process that is gone nothing can be read
        problems.append(f"{error} after {time.monotonic() - began:.1f} s; it held {peak:.0f} MiB")
    finally:
        honest.stop()
        control.stop()
        flood.kill()
        flood.wait()
        allowed = max(SERVED_WITHIN_S, TIMES_SLOWER * control.longest)
        problems += bystanders.complaints(allowed)
        bystanders.close()
    print(f"{honest.rounds} rounds meanwhile, the longest took {honest.longest:.2f} s; without the flood {control.rounds}, "
          f"{control.longest:.2f} s", flush=True)
    problems += [each.problem for each in (honest, control) if each.problem]
    if peak > limit_mib:
        problems.append(f"it held {peak:.0f} MiB of {limit_mib}")
    if honest.rounds < max(min(2, control.rounds), control.rounds / TIMES_SLOWER):
        problems.append(f"the honest workers made {honest.rounds} rounds, and {control.rounds} without the flood")
    if honest.longest > allowed:
        problems.append(f"a round took {honest.longest:.1f} s, allowed are {allowed:.1f}")
    for problem in problems:
        print(f"    FAILED: {problem}")
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--limit-mib", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--without-flag", action="store_true", help="for a program that has no --memory-limit-mib")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.bin)
    if not (programs / "atoll-coordinator").exists():
        print(f"memory: no atoll-coordinator in {programs}: skipped")
        return 77
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-memory-"))
    cgroup = Cgroup.make(arguments.limit_mib << 20)
    more = []
    if cgroup is None and not arguments.without_flag:
        more = ["--memory-limit-mib", str(arguments.limit_mib)]
    print(f"the limit is {'a cgroup: ' + str(cgroup.folder) if cgroup else 'told to the program'}")
    coordinator = calm = None
    try:
        coordinator = Coordinator(folder / "run", programs, max_connections=4096, budget_mib=64, more=more,
                                  enter=cgroup.entrance if cgroup else None)
        calm = Coordinator(folder / "calm", programs, max_connections=4096, budget_mib=64)
        return 0 if under_flood(coordinator, calm, arguments.seconds, arguments.limit_mib) else 1
    finally:
        for each in (coordinator, calm):
            if each is not None and each.process.poll() is None:
                each.stop()
        if cgroup is not None:
            cgroup.remove()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
