#!/usr/bin/env python3
"""Compute utilisation of workers that sit behind a long thin link.

The real coordinator on one host and real workers on another (network namespaces of this machine, link.py), whose
inner step is a timer (atoll-timed-worker). A run starts on an easy link; when all workers train, the link gets its
delay, loss and bandwidth. Measured is, per worker, from its first finished round to its last (overlapped: between
pushes of fragment 0, without the first two cycles and the end where there are enough):

  utilisation   inner steps x the length of a step / wall time: what the worker computed of what it could have
  kept          of the exchanges that H inner steps should bring, how many came (blocking: all, by definition)
  up, down      bytes on the wire per H inner steps, of all workers together, with headers and what was sent again

    sudo bench/wan/wan.py                                                    CUBIC and BBR, 10 to 300 Mbit/s
    sudo bench/wan/wan.py --mbit 100 --congestion bbr --only overlap-e3m0    one run
    sudo bench/wan/wan.py --plan --loss 0 --mbit 20,100 --congestion bbr     and what `atollctl plan` says of each

Needs root for the namespaces, and scripts/setup.sh --groups wan; exits with 77 without them. Results go to --out
(JSON, after every run; runs that are in it already are not done again) and to standard output as Markdown tables.
Ctrl-C ends it at once: the runs under way leave nothing behind, those that were done are reported.
"""

import argparse
import concurrent.futures
import datetime
import itertools
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import link

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNAVAILABLE = 77
TARGET = 0.95
# 10.0 M parameters.
MODEL = "{layers: 12, heads: 8, width: 256, context: 1024, vocabulary: 1024}"

BOTH_E3M0 = "codec: {push: e3m0, pull_delta: e3m0}"
OVERLAP = "sync: {{mode: overlapped, fragments: 4, pattern: strided, delay_steps: {delay_steps}}}"
# Name -> (what is added to the configuration, rounds).
RECIPES = {
    "blocking-fp32": ("codec: {push: fp32, pull_delta: none}", 3),
    "blocking-e3m0": (BOTH_E3M0, 6),
    "overlap-e3m0": (BOTH_E3M0 + "\n" + OVERLAP, 10),
}
# On slow links a round takes minutes, and the second says as much as the sixth.
FEWER_ROUNDS = {"blocking-fp32": 2, "blocking-e3m0": 4}


def config_yaml(recipe, rounds, args):
    more = RECIPES[recipe][0].replace("{{", "{").replace("}}", "}").replace("{delay_steps}", str(args.delay_steps))
    return f"""\
run: {{name: {recipe}, workers: {args.workers}, rounds: {rounds}}}
model: {{gpt: {MODEL}}}
data: {{tokenizer: bytes, mode: local}}
inner: {{steps: {args.inner_steps}, learning_rate: 1e-3, batch: 1}}
round: {{deadline_s: 7200, lease_s: 120, start_workers: {args.workers}}}
evaluation: {{every: 0, batches: 1}}
{more}
"""


# Ctrl-C, or SIGTERM: every run that is under way ends at once and takes its processes, link and folder with it.
STOP = threading.Event()


class Interrupted(Exception):
    pass


def pause(seconds):
    """Sleeps; raises Interrupted as soon as the measurement is to end."""
    if STOP.wait(seconds):
        raise Interrupted


class Run:
    """One run on a link of its own."""

    def __init__(self, args, case, wire):
        self.args, self.case, self.wire = args, case, wire
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-wan-", dir=args.dir))
        self.processes = []
        self.traffic = []  # (seconds, up, down)
        self.done = threading.Event()

    def start(self, side, *command):
        with open(self.folder / f"{len(self.processes)}.log", "wb") as log:
            self.processes.append(subprocess.Popen(self.wire.on(side, *command), stdout=log, stderr=log,
                                                   stdin=subprocess.DEVNULL, start_new_session=True))

    def start_all(self):
        args, case = self.args, self.case
        rounds = RECIPES[case["recipe"]][1]
        if case["mbit"] <= 30 or case["congestion"] == "cubic":
            rounds = min(rounds, FEWER_ROUNDS.get(case["recipe"], rounds))
        (self.folder / "run.yaml").write_text(config_yaml(case["recipe"], rounds, args))
        ports = self.folder / "ports.json"
        self.start("a", args.bin / "atoll-coordinator", "--config", self.folder / "run.yaml", "--data-dir",
                   self.folder / "data", "--listen", f"{link.ADDRESSES['a']}:7600", "--admin-listen", "127.0.0.1:0",
                   "--metrics-listen", "", "--port-file", ports, "--insecure-bind")
        self.wait_for(ports.exists, 60, "the coordinator does not serve")
        for w in range(args.workers):
            self.start("b", args.bin / "atoll-timed-worker", "--coordinator", f"{link.ADDRESSES['a']}:7600", "--name",
                       f"w{w}", "--state-dir", self.folder / f"w{w}", "--journal", self.folder / f"w{w}.journal",
                       "--step-ms", args.step_ms, "--seed", w + 1, "--pull-streams", args.pull_streams)

    def wait_for(self, condition, seconds, complaint):
        deadline = time.monotonic() + seconds
        while not condition():
            ended = [i for i, p in enumerate(self.processes) if p.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise RuntimeError(complaint + ":\n" + (self.folder / f"{(ended or [0])[0]}.log").read_text()[-2000:])
            pause(0.05)

    def journal(self, worker):
        path = self.folder / f"w{worker}.journal"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def count_traffic(self):
        while not self.done.wait(0.25):
            self.traffic.append((time.monotonic(), *self.wire.counters()))

    def traffic_at(self, when, column):
        """Interpolated."""
        for before, after in itertools.pairwise(self.traffic):
            if before[0] <= when <= after[0]:
                share = (when - before[0]) / (after[0] - before[0])
                return before[column] + share * (after[column] - before[column])
        return self.traffic[0 if when < self.traffic[0][0] else -1][column]

    def execute(self):
        args, case = self.args, self.case
        load = os.getloadavg()[0]
        counter = threading.Thread(target=self.count_traffic)
        try:
            self.wire.use_congestion_control(case["congestion"])
            self.start_all()
            counter.start()
            self.wait_for(lambda: all(self.journal(w) and self.journal(w)[-1]["steps"] for w in range(args.workers)), 120,
                          "the workers do not begin")
            self.wire.shape(args.delay_ms, args.loss, case["mbit"], args.buffer_ms)
            end = time.monotonic() + args.limit
            while any(p.poll() is None for p in self.processes[1:]) and time.monotonic() < end:
                pause(0.2)
            result = self.account()
            result.update(cut=any(p.poll() is None for p in self.processes[1:]), load=[load, os.getloadavg()[0]])
            return result
        finally:
            self.done.set()
            if counter.ident is not None:
                counter.join()
            self.end()

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        if self.args.keep is not None:
            kept = self.args.keep / "-".join(map(str, self.case.values()))
            kept.mkdir(parents=True, exist_ok=True)
            for path in [*self.folder.glob("*.log"), *self.folder.glob("*.journal")]:
                shutil.copy(path, kept)
        shutil.rmtree(self.folder, ignore_errors=True)

    def account(self):
        """None of the figures when no worker finished two rounds."""
        args = self.args
        workers = []
        for w in range(args.workers):
            events = self.journal(w)
            rounds = [e for e in events if e["event"] == "round"]
            # Overlapped: the first cycle finds connections that are used to another link, and at the end of the budget
            # all fragments go at once.
            if "overlap" in self.case["recipe"]:
                rounds = rounds[2:-1] if len(rounds) > 4 else rounds[1:]
            if len(rounds) >= 2:
                workers.append(self.account_of(events, rounds[0], rounds[-1]))
        if not workers:
            return {"utilisation": None}
        begin, end = min(w["begin"] for w in workers), max(w["end"] for w in workers)
        cycles = statistics.mean(w["cycles"] for w in workers)
        mean = {key: statistics.mean(w[key] for w in workers) for key in ("utilisation", "round_s", "kept", "overslept")}
        ages = [w["age"] for w in workers if w["age"] is not None]
        return {**mean, "least": min(w["utilisation"] for w in workers), "cycles": cycles,
                "age_steps": statistics.mean(ages) if ages else None,
                "retries": sum(w["retries"] for w in workers),
                "up_mb": (self.traffic_at(end, 1) - self.traffic_at(begin, 1)) / 1e6 / cycles,
                "down_mb": (self.traffic_at(end, 2) - self.traffic_at(begin, 2)) / 1e6 / cycles}

    def account_of(self, events, first, last):
        steps, wall = last["steps"] - first["steps"], last["t"] - first["t"]
        cycles = steps / self.args.inner_steps
        inside = [e for e in events if first["t"] < e["t"] <= last["t"]]
        used = [e["age"] for e in inside if e["event"] == "used"]
        overlapped = "overlap" in self.case["recipe"]
        return {"begin": first["t"], "end": last["t"], "cycles": cycles, "round_s": wall / cycles,
                "utilisation": steps * self.args.step_ms / 1e3 / wall,
                # What the timer took beyond its time: the machine's load, not the link's.
                "overslept": (last["compute"] - first["compute"] - steps * self.args.step_ms / 1e3) / wall,
                "kept": len(used) / (4 * cycles) if overlapped else 1.0,
                "age": statistics.mean(used) if used else None,
                "retries": sum(e["event"] == "retry" for e in inside)}


def planned(args, case):
    """What `atollctl plan` says of this case: seconds from one push of a fragment to its next, and utilisation."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(config_yaml(case["recipe"], RECIPES[case["recipe"]][1], args))
        config.flush()
        out = subprocess.run([args.bin / "atollctl", "--json", "plan", config.name, "--bandwidth", f"{case['mbit']}Mbit/s",
                              "--latency", f"{2 * args.delay_ms}ms", "--step-ms", str(args.step_ms)],
                             check=True, capture_output=True, text=True).stdout
    time_of = json.loads(out)["round_seconds"]
    return {"round_s": time_of["round"], "utilisation": time_of["utilisation"]}


def plan_table(results, args):
    """Both as workers account for them: steps that a worker takes because its next push is held back are overdue."""
    lines = ["", "| recipe | Mbit/s | s from push to push | planned | | utilisation | planned | |", "|" + "---|" * 8]
    for r in results:
        if r["utilisation"] is None:
            continue
        plan = planned(args, r)
        kept = min(r["kept"], 1)
        lines.append(f"| {r['recipe']} | {r['mbit']:g} " + "".join(
            f"| {seen:{form}} | {planned_value:{form}} | {100 * (planned_value / seen - 1):+.1f} % "
            for seen, planned_value, form in ((r["round_s"] / kept, plan["round_s"], ".2f"),
                                              (r["utilisation"] * kept, plan["utilisation"], ".1%"))) + "|")
    return "\n".join(lines)


def bare_streams(args, case, number):
    """Mbit/s of one and of --workers plain TCP streams up the same link, over ten seconds of each: what the
    congestion control makes of it."""
    sink = ("import socket,threading\ns=socket.create_server(('0.0.0.0',7700))\n"
            "def drain(c):\n while c.recv(1<<20): pass\n"
            "while True: threading.Thread(target=drain,args=(s.accept()[0],),daemon=True).start()")
    source = ("import socket,time\nc=socket.create_connection(('%s',7700))\nend=time.monotonic()+12\n"
              "c.settimeout(1)\n"
              "while time.monotonic()<end:\n try: c.send(bytes(1<<16))\n except TimeoutError: pass" % link.ADDRESSES["a"])
    speeds = {}
    with link.Link(number, args.ahead) as wire:
        wire.use_congestion_control(case["congestion"])
        processes = [subprocess.Popen(wire.on("a", sys.executable, "-c", sink), start_new_session=True)]
        try:
            pause(0.5)
            wire.shape(args.delay_ms, args.loss, case["mbit"], args.buffer_ms)
            for streams in (1, args.workers):
                senders = [subprocess.Popen(wire.on("b", sys.executable, "-c", source), start_new_session=True)
                           for _ in range(streams)]
                processes += senders
                pause(2)
                begin, before = time.monotonic(), received(wire)
                pause(8)
                speeds[streams] = (received(wire) - before) * 8 / 1e6 / (time.monotonic() - begin)
                for sender in senders:
                    sender.kill()
                    sender.wait()
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return speeds


def received(wire):
    """Bytes that host a has received: what was lost is not in it."""
    out = subprocess.run(["ip", "-n", wire.space("a"), "-s", "-j", "link", "show", "dev", wire.tap["a"]],
                         capture_output=True, check=True).stdout
    return json.loads(out)[0]["stats64"]["rx"]["bytes"]


def bandwidth_for_target(points):
    """In words, from [(Mbit/s, utilisation)]. Wall time beside computing is taken to be linear in 1 / bandwidth."""
    points = sorted((mbit, utilisation) for mbit, utilisation in points if utilisation)
    if not points:
        return "-"
    if points[0][1] >= TARGET:
        return f"<= {points[0][0]:g}"
    wanted = 1 / TARGET - 1
    for (low, below), (high, above) in itertools.pairwise(points):
        if below < TARGET <= above:
            idle_low, idle_high = 1 / below - 1, 1 / above - 1
            share = (idle_low - wanted) / (idle_low - idle_high)
            return f"{1 / (1 / low + share * (1 / high - 1 / low)):.0f}"
    return f"> {points[-1][0]:g}"


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def report(results, args):
    lines = [f"{args.workers} workers, H = {args.inner_steps} of {args.step_ms:g} ms, {args.delay_ms:g} ms each way, "
             f"{args.loss:g} % loss each way, buffer {args.buffer_ms:g} ms, {os.cpu_count()} cores, {'ahead of other programs, ' if args.ahead else ''}"
             f"{datetime.date.today()}", "",
             "| recipe | congestion control | Mbit/s | utilisation | worst worker | kept | answers used after, steps "
             "| s per H steps | up, MB | down, MB | timer late | load |", "|" + "---|" * 12]
    for r in results:
        age = "-" if r.get("age_steps") is None else f"{r['age_steps']:.1f}"
        head = f"| {r['recipe']} | {r['congestion']} | {r['mbit']:g} | "
        if r["utilisation"] is None:
            lines.append(head + f"no second round within {args.limit:g} s | | | | | | | | {r['load'][1]:.1f} |")
            continue
        lines.append(head + f"{percent(r['utilisation'])} | {percent(r['least'])} | {percent(r['kept'])} | {age} | "
                     f"{r['round_s']:.2f} | {r['up_mb']:.1f} | {r['down_mb']:.1f} | {percent(r['overslept'])} | {r['load'][1]:.1f} |")
    lines += ["", f"| recipe | congestion control | Mbit/s for {100 * TARGET:g} % utilisation | and for {100 * TARGET:g} % of "
              "the exchanges too |", "|---|---|---|---|"]
    for recipe, congestion in dict.fromkeys((r["recipe"], r["congestion"]) for r in results):
        own = [r for r in results if (r["recipe"], r["congestion"]) == (recipe, congestion)]
        both = [(r["mbit"], min(r["utilisation"], r["kept"])) for r in own if r["utilisation"] is not None]
        lines.append(f"| {recipe} | {congestion} | {bandwidth_for_target([(r['mbit'], r['utilisation']) for r in own])} | "
                     f"{bandwidth_for_target(both)} |")
    return "\n".join(lines)


def unavailable(message):
    print(f"wan.py: {message}", file=sys.stderr)
    sys.exit(UNAVAILABLE)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--inner-steps", type=int, default=50, help="H")
    parser.add_argument("--step-ms", type=float, default=100)
    parser.add_argument("--delay-steps", type=int, default=20, help="overlapped: from a push to the use of its answer")
    parser.add_argument("--pull-streams", type=int, default=1, help="of each worker")
    parser.add_argument("--delay-ms", type=float, default=50, help="each way")
    parser.add_argument("--loss", type=float, default=1, help="percent, each way")
    parser.add_argument("--buffer-ms", type=float, default=100, help="the bottleneck's queue")
    parser.add_argument("--mbit", default="10,30,100,300", help="bandwidths each way")
    parser.add_argument("--congestion", default="cubic,bbr")
    parser.add_argument("--only", default=",".join(RECIPES), help="recipes")
    parser.add_argument("--plan", action="store_true", help="compare with `atollctl plan`, which knows of no loss")
    parser.add_argument("--bare", action="store_true", help="measure what plain TCP streams get, and nothing else")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is cut off")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, each on a link of its own")
    parser.add_argument("--ahead", action="store_true",
                        help="what is measured goes before all other programs (SCHED_RR): for a busy machine")
    parser.add_argument("--dir", default=None, help="where the runs' folders are made")
    parser.add_argument("--keep", type=pathlib.Path, default=None, help="copy logs and journals of every run to here")
    parser.add_argument("--out", type=pathlib.Path, default=None)
    return parser.parse_args()


def check(args):
    if os.geteuid() != 0:
        unavailable("needs root, for network namespaces")
    if link.missing_packages():
        unavailable(f"needs {', '.join(link.missing_packages())} (scripts/setup.sh --groups wan)")
    if not pathlib.Path("/dev/net/tun").exists():
        unavailable("needs /dev/net/tun")
    for program in ("atoll-coordinator", "atoll-timed-worker"):
        if not (args.bin / program).exists():
            unavailable(f"needs {args.bin / program}: build it first")


def cases_of(args):
    offered = link.congestion_controls()
    for congestion in args.congestion.split(","):
        if congestion not in offered:
            print(f"wan.py: this kernel has no {congestion}, only {', '.join(offered)}: left out", file=sys.stderr)
            continue
        for recipe in ["bare"] if args.bare else args.only.split(","):
            for mbit in args.mbit.split(","):
                yield {"recipe": recipe, "congestion": congestion, "mbit": float(mbit)}


def measure(args, case, number):
    pause(0)
    print(" ".join(map(str, case.values())), "...", file=sys.stderr, flush=True)
    if args.bare:
        speeds = bare_streams(args, case, number)
        print(f"{case['congestion']}, {case['mbit']:g} Mbit/s: " +
              ", ".join(f"{n} stream{'s' * (n > 1)} {speed:.1f} Mbit/s" for n, speed in speeds.items()), flush=True)
        return None
    with link.Link(number, args.ahead) as wire:
        result = Run(args, case, wire).execute()
    print(" ".join(map(str, case.values())), percent(result["utilisation"]), file=sys.stderr, flush=True)
    return {**case, **result}


def main():
    args = parse_arguments()
    unknown = set(args.only.split(",")) - set(RECIPES)
    if unknown:
        sys.exit(f"wan.py: no recipe {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    check(args)
    old = json.loads(args.out.read_text())["runs"] if args.out and args.out.exists() else []
    have = {(r["recipe"], r["congestion"], r["mbit"]) for r in old}
    cases = [c for c in cases_of(args) if tuple(c.values()) not in have]
    results = list(old)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: STOP.set())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed(pool.submit(measure, args, c, n) for n, c in enumerate(cases)):
            if isinstance(done.exception(), Interrupted) or done.result() is None:
                continue
            results.append(done.result())
            if args.out:
                settings = {k: str(v) for k, v in vars(args).items()}
                args.out.write_text(json.dumps({"settings": settings, "kernel": platform.release(), "runs": results}, indent=1))
    if not args.bare and results:
        results.sort(key=lambda r: (list(RECIPES).index(r["recipe"]), r["congestion"], r["mbit"]))
        print(report(results, args) + (plan_table(results, args) if args.plan else ""))
    if STOP.is_set():
        sys.exit(130)


if __name__ == "__main__":
    main()
