#!/usr/bin/env python3
"""Atoll beside other libraries: the same PyTorch loop with two workers on one machine, with Atoll, torchft's DiLoCo and hivemind's optimizer.

Usage: peers.py [--bin DIR] [--library FILE] [--python FILE] [--only NAME,...] [--rounds N] [--kill] [--keep DIR] [--json]

The loops are in peer_loops.py. Prints for each library: the lines that it adds to the plain loop; the seconds until the first inner step,
of which imports; and the time of an exchange, in which the loop does not train. *alone* is the stall of the worker that arrived last, so it has
no wait for the other one; *mean* is that of both. Medians over the exchanges after the first two.
--kill kills one worker with its child processes in the middle of a round (SIGKILL), starts it again 40 s later, and prints what happened.
--python is an environment with bench/python/peers.txt; default: that of `scripts/interop.sh --peers`. --keep keeps logs and marks in DIR.
"""
import argparse
import difflib
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
H = 50  # as in peer_loops.py, which this process does not import: it needs no torch
LIMIT_S = 240
AWAY_S = 40
TRIES = 3  # a worker of hivemind sometimes ends with a segmentation fault; the message says so
# name: loop, and the settings that differ
SYSTEMS = {
    "atoll-e3m0": ("with_atoll", {}),
    "atoll-fp32": ("with_atoll", {}),
    "atoll-e3m0-lease-5": ("with_atoll", {}),
    "torchft": ("with_torchft", {}),
    "hivemind": ("with_hivemind", {}),
    "hivemind-group-2": ("with_hivemind", {"delay_state_averaging": False,
                                           "averager_opts": {"target_group_size": 2, "request_timeout": 1.0}}),
}
EXCHANGED = re.compile(r"Averaged parameters with 2 peers|should_commit=True enough_replicas=True")
# Without this, glibc gives freed gradients back to the system in some processes and not in others: 85 to 125 ms a step for the same loop.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_MMAP_THRESHOLD_": str(8 << 30)}
RUN = """run: {name: peers, workers: 2, rounds: 1000}
model: external
data: {mode: local}
inner: {steps: 50, batch: 16, learning_rate: 1e-4, min_learning_rate_ratio: 1}
outer: {optimizer: nesterov, learning_rate: 0.7, momentum: 0.9}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """A process that leads a session, its descendants, and what else is in the session: children of a process that has ended."""
    children, found = {}, [pid]
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            _, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        one = int(path.parent.name)
        children.setdefault(int(parent), []).append(one)
        if int(session) == pid and one != pid:
            found.append(one)
    for one in found:
        found += [child for child in children.get(one, []) if child not in found]
    return found


def kill_family(process):
    for pid in family(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def processor_seconds(pids):
    """Of these processes, with their children that have ended."""
    total = 0
    for pid in pids:
        try:
            total += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def machine_seconds():
    """Processor seconds of the whole machine: used, and all."""
    fields = [int(field) / os.sysconf("SC_CLK_TCK") for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


class Marks:
    """A worker's file, as far as it is written. Steps are (time, batch, parameters), events (time, text)."""

    def __init__(self, path, since=0.0):
        self.steps, self.events = [], []
        if not path.exists():
            return
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            fields = line.split()
            if not line.endswith("\n") or len(fields) < 3:
                continue
            if fields[0] == "#":
                self.events.append((float(fields[1]), " ".join(fields[2:])))
            else:
                self.steps.append((float(fields[0]), int(fields[1]), [float(value) for value in fields[2:]]))
        self.steps = [step for step in self.steps if step[0] >= since]
        self.events = [event for event in self.events if event[0] >= since]

    def time_of(self, text):
        return next(when for when, what in self.events if what == text)

    def exchanges(self, loop):
        """Indices of the steps whose end has an exchange with the other worker."""
        if loop in ("with_atoll", "plain"):
            return list(range(H - 1, len(self.steps) - 1, H))
        times = [when for when, what in self.events if EXCHANGED.search(what)]
        return [i for i, (one, two) in enumerate(zip(self.steps, self.steps[1:])) if any(one[0] <= when < two[0] for when in times)]


class Trial:
    """One library with its server and two workers, in a folder."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.loop, self.settings = SYSTEMS.get(name, ("plain", {}))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-peers-"))
        self.server, self.address, self.workers, self.started = None, "-", {}, {}

    def __enter__(self):
        self.begin = machine_seconds()
        start = {"with_atoll": self.start_atoll, "with_torchft": self.start_torchft, "with_hivemind": self.start_hivemind}
        if self.loop in start:
            start[self.loop]()
        return self

    def __exit__(self, *_):
        for process in [*self.workers.values(), *([self.server] if self.server else [])]:
            kill_family(process)
        if self.arguments.keep:
            target = self.arguments.keep / (self.name + ("-kill" if self.arguments.kill else ""))
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns("run", "*.state"))
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, command, log, environment=None):
        with open(self.folder / log, "ab") as output:
            return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdout=output, stderr=output,
                                    stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **(environment or {})})

    def serve(self, command, pattern):
        """Starts a server, and waits for its address in its log."""
        self.server = self.spawn(command, "server.log")
        end = time.monotonic() + 60
        while time.monotonic() < end and self.server.poll() is None:
            found = re.search(pattern, (self.folder / "server.log").read_text())
            if found:
                return found.group(1)
            time.sleep(0.05)
        raise SystemExit(f"{command[0]} did not start: {(self.folder / 'server.log').read_text()[-2000:]}")

    def start_atoll(self):
        codec = "codec: {push: fp32, pull_delta: none}\n" if "fp32" in self.name else ""  # e3m0 both ways is the default
        lease = "round: {lease_s: 5}\n" if "lease-5" in self.name else ""
        (self.folder / "run.yaml").write_text(RUN + codec + lease)
        port = free_port()
        self.serve([self.arguments.bin / "atoll-coordinator", "--config", self.folder / "run.yaml", "--data-dir", self.folder / "run",
                    "--listen", f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "",
                    "--port-file", self.folder / "ports.json"], "(.)")
        while not (self.folder / "ports.json").exists():
            time.sleep(0.05)
        self.address = f"127.0.0.1:{port}"

    def start_torchft(self):
        """The options of the README of torchft."""
        port = self.serve([self.arguments.python.with_name("torchft_lighthouse"), "--min_replicas", "1", "--quorum_tick_ms", "100",
                           "--join_timeout_ms", "10000", "--bind", "[::]:0"], r"listening on: \S+:(\d+)")
        self.address = f"http://localhost:{port}"

    def start_hivemind(self):
        self.address = self.serve([self.arguments.python.with_name("hivemind-dht"), "--host_maddrs", "/ip4/127.0.0.1/tcp/0"],
                                  r"--initial_peers (\S+)")

    def start_worker(self, worker):
        environment = {**KEEP_MEMORY, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(ROOT / "python"),
                       "ATOLL_LIBRARY": str(self.arguments.library), "ATOLL_ENGINE": str(self.arguments.bin / "atoll-engine")}
        command = [self.arguments.python, "-B"]
        if self.loop == "with_torchft":  # its Manager needs the store of torchrun
            command += ["-m", "torch.distributed.run", f"--master_port={free_port()}", "--nnodes=1", "--nproc_per_node=1"]
            environment["TORCHFT_LIGHTHOUSE"] = self.address
        command += [HERE / "peer_worker.py", self.loop, worker, self.address, self.folder, json.dumps(self.settings)]
        self.started[worker] = time.monotonic()
        self.workers[worker] = self.spawn(command, f"w{worker}.log", environment)

    def marks(self, worker):
        return Marks(self.folder / f"w{worker}.marks", self.started[worker])

    def wait(self, condition, limit_s=LIMIT_S):
        """False: the time is over, or a worker has ended."""
        end = time.monotonic() + limit_s
        while not condition():
            ended = [f"worker {worker} has ended with {process.returncode}" for worker, process in self.workers.items()
                     if process.poll() is not None]
            if ended or time.monotonic() > end:
                print(f"{self.name}: {'; '.join(ended) or 'the time is over'}", file=sys.stderr)
                return False
            time.sleep(0.1)
        return True

    def others(self):
        """The share of the processors that other programs on this machine have used since the start."""
        used, all_ = (now - then for now, then in zip(machine_seconds(), self.begin))
        mine = {pid for process in [*self.workers.values(), *([self.server] if self.server else [])] for pid in family(process.pid)}
        return (used - processor_seconds(mine)) / all_

    def exchanged(self, count):
        return all(len(self.marks(worker).exchanges(self.loop)) >= count for worker in (0, 1))


def added_lines(name):
    """Lines of code of a loop that the plain loop does not have. Empty lines, comments and indentation do not count."""
    source = (HERE / "peer_loops.py").read_text()

    def body(function):
        text = re.search(rf"^def {function}\(.*\n((?:    .*\n|\n)+)", source, re.MULTILINE).group(1)
        return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]

    difference = list(difflib.ndiff(body("plain"), body(name)))
    return sum(line.startswith("+ ") for line in difference)


def stalls(trial):
    """For each exchange: (of worker 0, of worker 1), seconds beyond a usual step."""
    found = []
    for worker in (0, 1):
        steps = trial.marks(worker).steps
        lengths = [two[0] - one[0] for one, two in zip(steps, steps[1:])]
        usual = statistics.median(lengths)
        found.append([(steps[i][0], steps[i + 1][0], lengths[i] - usual) for i in trial.marks(worker).exchanges(trial.loop)])
    pairs = []
    for begin, end, stall in found[0]:
        for other_begin, other_end, other in found[1]:
            if begin < other_end and other_begin < end:
                pairs.append((stall, other))
    return pairs


def measure(name, arguments):
    with Trial(name, arguments) as trial:
        for worker in (0, 1):
            trial.start_worker(worker)
        if not trial.wait(lambda: trial.exchanged(arguments.rounds + 2)):
            print("\n".join((trial.folder / "w0.log").read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)
            return None
        others, marks = trial.others(), [trial.marks(worker) for worker in (0, 1)]
        lengths = [two[0] - one[0] for one, two in zip(marks[0].steps, marks[0].steps[1:])]
        found = {"step_ms": 1e3 * statistics.median(lengths), "others": others}
        found["first_step_s"] = statistics.median(m.steps[0][0] - trial.started[w] for w, m in enumerate(marks))
        found["launcher_s"] = statistics.median(m.time_of("script") - trial.started[w] for w, m in enumerate(marks))
        found["import_torch_s"] = statistics.median(m.time_of("torch") - m.time_of("script") for m in marks)
        found["import_library_s"] = statistics.median(m.time_of("library") - m.time_of("torch") for m in marks)
        if trial.loop != "plain":
            pairs = stalls(trial)[2:]
            found.update(lines=added_lines(trial.loop), exchanges=len(pairs), alone_s=statistics.median(map(min, pairs)),
                         mean_s=statistics.median(map(statistics.mean, pairs)), largest_s=max(map(max, pairs)))
        return found


def longest_gap(steps, begin, end):
    """The longest time between two steps in a span, and when it began. The span's end counts as a step."""
    times = [step[0] for step in steps if step[0] <= end] + [end]
    gaps = [(two - one, one) for one, two in zip(times, times[1:]) if two > begin]
    return max(gaps, default=(0.0, begin))


def standing_still(steps, begin, end):
    """Seconds of a span in steps that took more than a second longer than usual."""
    usual = statistics.median(two[0] - one[0] for one, two in zip(steps, steps[1:]))
    times = [step[0] for step in steps if begin < step[0] <= end]
    return sum(two - one - usual for one, two in zip(times, times[1:]) if two - one > usual + 1)


def same_parameters(step, others):
    """Whether the other worker had these parameters at the start of a step, within 15 s."""
    return any(abs(when - step[0]) < 15 and all(abs(a - b) <= 1e-6 * (abs(a) + 1e-3) for a, b in zip(values, step[2]))
               for when, _, values in others)


def kill_one(name, arguments):
    with Trial(name, arguments) as trial:
        for worker in (0, 1):
            trial.start_worker(worker)

        def in_the_middle():
            marks = trial.marks(1)
            ends = marks.exchanges(trial.loop)
            return len(ends) >= 2 and trial.exchanged(2) and len(marks.steps) - 1 - ends[-1] == H // 2

        if not trial.wait(in_the_middle):
            return None
        killed_at = time.monotonic()
        kill_family(trial.workers.pop(1))
        killed = trial.marks(1)
        (trial.folder / "w1.marks").rename(trial.folder / "w1-killed.marks")
        trial.wait(lambda: time.monotonic() > killed_at + AWAY_S)
        restarted_at = time.monotonic()
        trial.start_worker(1)
        trial.wait(lambda: len(trial.marks(1).exchanges(trial.loop)) >= 2, 90)
        time.sleep(2)
        others = trial.others()  # less the killed worker's
        end, again, steps = time.monotonic(), trial.marks(1), trial.marks(0).steps
        survivor_events = trial.marks(0).events
        gap, gap_at = longest_gap(steps, killed_at, restarted_at)
        gap_after, _ = longest_gap(steps, restarted_at, end)
        together = [step for step in again.steps if same_parameters(step, steps)]
        return {
            "others": others, "killed_after_step_of_round": len(killed.steps) - 1 - killed.exchanges(trial.loop)[-1],
            "last_batch_before": killed.steps[-1][1],
            "survivor_goes_on": steps[-1][0] > killed_at + gap + 5, "stands_still_s": gap, "stands_still_from_s": gap_at - killed_at,
            "stands_still_while_away_s": standing_still(steps, killed_at, restarted_at),
            "survivor_steps_while_away": sum(killed_at < step[0] < restarted_at for step in steps),
            "first_step_after_restart_s": again.steps[0][0] - restarted_at if again.steps else None,
            "first_batch_after_restart": again.steps[0][1] if again.steps else None,
            "equal_parameters_after_s": together[0][0] - restarted_at if together else None,
            "steps_before_equal": again.steps.index(together[0]) if together else None,
            "survivor_stands_still_after_restart_s": gap_after,
            "events": [f"{when - killed_at:+.1f} {what}" for when, what in survivor_events if when > killed_at and notable(what)],
            "events_again": [f"{when - restarted_at:+.1f} {what}" for when, what in again.events if notable(what)],
        }


def notable(text):
    return not re.search(r"accumulated|Preparing|Syncing|resetting fr|flight recorder|^INFO$|transferring", text)


def table(results):
    plain = results.get("plain")
    if plain:
        yield f"plain loop, two processes: {plain['step_ms']:.0f} ms a step, {plain['first_step_s']:.1f} s to the first step"
        yield ""
    yield "| library | lines added | first step, s | of which launcher, torch, library | step, ms | exchange alone, s | mean | longest | other programs |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, one in results.items():
        if one is None:
            yield f"| {name} | does not run |"
        elif name != "plain":
            imports = f"{one['launcher_s']:.1f}, {one['import_torch_s']:.1f}, {one['import_library_s']:.1f}"
            yield (f"| {name} | {one['lines']} | {one['first_step_s']:.1f} | {imports} | {one['step_ms']:.0f} | {one['alone_s']:.2f} | "
                   f"{one['mean_s']:.2f} | {one['largest_s']:.2f} | {100 * one['others']:.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/lib/libatoll_client.so.1")
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(["plain", *SYSTEMS]))
    parser.add_argument("--rounds", type=int, default=6, help="measured exchanges")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.bin, arguments.library = arguments.bin.resolve(), arguments.library.resolve()
    if arguments.python is None:
        arguments.python = pathlib.Path(subprocess.run([ROOT / "scripts/interop.sh", "--peers", "--python"], check=True,
                                                       capture_output=True, text=True).stdout.strip())
    results = {}
    for name in arguments.only.split(","):
        if (name == "plain") if arguments.kill else ("lease" in name):
            continue
        for _ in range(TRIES):
            results[name] = (kill_one if arguments.kill else measure)(name, arguments)
            if results[name] is not None:
                break
    if arguments.kill:
        print(json.dumps(results, indent=1))
    else:
        print(json.dumps(results, indent=1) if arguments.json else "\n".join(table(results)))


if __name__ == "__main__":
    main()
