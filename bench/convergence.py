#!/usr/bin/env python3
"""Convergence of real runs (one coordinator, N worker processes, real sockets) against plain PyTorch, on equal tokens.

Each line of the table is one run on the same text, the same model, the same number of tokens per worker:

  atoll-h50, atoll-h10     DiLoCo through the coordinator, N workers
  atoll-data-parallel      one worker with N micro-batches per step: what data-parallel training computes
  torch-*                  tests/reference/diloco_reference.py: the same in plain PyTorch, no code of ours

    bench/convergence.py --tokens run/quickstart/tokens                      all of them, about 20 minutes on two cores
    bench/convergence.py --tokens DIR --only atoll-h50,torch-h50 --steps 200

Results go to --out (JSON) and to standard output as a Markdown table.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

MODEL = {"layers": 4, "heads": 4, "width": 128, "context": 64, "vocabulary": 256}
BATCH = 12


# What travels is not what is compared.
FLOAT32 = "codec: {push: fp32, pull_delta: none}\n"


def config_yaml(name, workers, steps, inner_steps, outer, accumulation, args, more=FLOAT32):
    model = ", ".join(f"{k}: {v}" for k, v in MODEL.items())
    return f"""\
run: {{name: {name}, workers: {workers}, rounds: {steps // inner_steps}, seed: {args.seed}}}
model:
  gpt: {{{model}}}
data: {{tokenizer: bytes, partitions: {workers}}}
inner: {{steps: {inner_steps}, learning_rate: 0.001, warmup_steps: {min(100, steps // 10)}, batch: {BATCH}, accumulation: {accumulation}}}
outer: {outer}
merge: {{weights: uniform}}
round: {{deadline_s: 600, lease_s: 60}}
evaluation: {{every: 0, batches: {args.eval_batches}}}
{more}"""


class Run:
    """One real run in a folder of its own."""

    def __init__(self, args, name, workers, yaml):
        self.args, self.name, self.workers = args, name, workers
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"atoll-{name}-"))
        (self.dir / "run.yaml").write_text(yaml)
        self.processes = []

    def start(self, *command):
        log = open(self.dir / f"{len(self.processes)}.log", "ab")
        process = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def status(self, admin):
        out = subprocess.run([self.args.bin / "atollctl", "--admin", admin, "status", "--json", "--history", "1000"],
                             capture_output=True, text=True)
        return json.loads(out.stdout) if out.returncode == 0 else None

    def execute(self):
        bin_dir, ports = self.args.bin, self.dir / "ports.json"
        began = time.time()
        try:
            self.start(bin_dir / "atoll-coordinator", "--config", self.dir / "run.yaml", "--data-dir", self.dir / "data",
                       "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "",
                       "--port-file", ports)
            while not ports.exists():
                time.sleep(0.05)
                if self.processes[0].poll() is not None:
                    raise RuntimeError((self.dir / "0.log").read_text())
            address = json.loads(ports.read_text())
            for w in range(self.workers):
                self.start(bin_dir / "atoll-worker", "--coordinator", address["data"], "--name", f"w{w}", "--data",
                           self.args.tokens, "--state-dir", self.dir / f"w{w}", "--threads",
                           max(1, os.cpu_count() // self.workers))
            while True:
                time.sleep(0.5)
                status = self.status(address["admin"])
                if status and status["state"] == "RUN_STATE_FINISHED":
                    if status["evaluations"] and status["evaluations"][-1]["version"] == status["fragments"][0]["version"]:
                        break
                if all(p.poll() is not None for p in self.processes[1:]):
                    raise RuntimeError(f"all workers of {self.name} ended: " + (self.dir / "1.log").read_text()[-2000:])
            loss = status["evaluations"][-1]["loss"]
            return {"loss": loss, "seconds": time.time() - began,
                    "moved_bytes": int(status["traffic"]["push_bytes"]) + int(status["traffic"]["pull_bytes"]),
                    "data_parallel_bytes": int(status["traffic"]["data_parallel_bytes"])}
        finally:
            for process in reversed(self.processes):
                process.terminate()
            for process in self.processes:
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
            shutil.rmtree(self.dir, ignore_errors=True)


def reference(args, mode, inner_steps, eta, mu, **more):
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        options = dict(MODEL, batch=BATCH, inner_steps=inner_steps, steps=args.steps, workers=args.workers, seed=args.seed,
                       learning_rate=1e-3, warmup=min(100, args.steps // 10), eval_batches=args.eval_batches,
                       outer_learning_rate=eta, outer_momentum=mu, mode=mode, tokens=str(args.tokens),
                       threads=os.cpu_count(), **more)
        (pathlib.Path(folder) / "options.json").write_text(json.dumps(options))
        subprocess.run(["/usr/bin/python3", ROOT / "tests/reference/diloco_reference.py",
                        pathlib.Path(folder) / "options.json", out], check=True)
        return {"loss": json.loads(out.read_text())["loss"], "seconds": time.time() - began}


def cases(args):
    n, steps = args.workers, args.steps

    def atoll(name, inner_steps, outer):
        return lambda: Run(args, name, n, config_yaml(name, n, steps, inner_steps, outer, 1, args)).execute()

    def nesterov(eta, mu):
        return f"{{optimizer: nesterov, learning_rate: {eta}, momentum: {mu}}}"

    plain = "{optimizer: sgd, learning_rate: 1}"
    yield "atoll-data-parallel", lambda: Run(args, "data-parallel", 1, config_yaml(
        "data-parallel", 1, steps, min(50, steps), plain, n, args)).execute()
    yield "atoll-single", lambda: Run(args, "single", 1, config_yaml("single", 1, steps, min(50, steps), plain, 1, args)).execute()
    for inner_steps in (50, 10):
        for eta, mu in args.outer:
            yield f"atoll-h{inner_steps} ({eta}, {mu})", atoll(f"h{inner_steps}", inner_steps, nesterov(eta, mu))
    for inner_steps in (50, 10):
        for eta, mu in args.outer:
            yield (f"torch-h{inner_steps} ({eta}, {mu})",
                   lambda h=inner_steps, e=eta, m=mu: reference(args, "diloco", h, e, m))
    yield "torch-data-parallel", lambda: reference(args, "data_parallel", 1, 1, 0)
    yield "torch-single", lambda: reference(args, "single", 1, 1, 0)


def report(results, args):
    base = results.get("atoll-data-parallel", {}).get("loss")
    lines = [f"{args.workers} workers, {args.steps} inner steps, seed {args.seed}, {platform.processor() or platform.machine()}, "
             f"{os.cpu_count()} cores, {datetime.date.today()}", "",
             "| run | validation loss | over data-parallel | traffic against data-parallel | seconds |", "|---|---|---|---|---|"]
    for name, r in results.items():
        over = f"{100 * (r['loss'] / base - 1):+.2f} %" if base else "-"
        diloco = r.get("moved_bytes") and name.startswith("atoll-h")
        fewer = f"{r['data_parallel_bytes'] / r['moved_bytes']:.0f}x fewer" if diloco else "-"
        lines.append(f"| {name} | {r['loss']:.4f} | {over} | {fewer} | {r['seconds']:.0f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=pathlib.Path, required=True, help="folder made by atoll-data tokenize")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--eval-batches", type=int, default=200)
    parser.add_argument("--outer", default="1.0:0.6,0.8:0.6,0.9:0.5", help="outer learning rate and momentum, pairs")
    parser.add_argument("--only", default="", help="names of runs (prefixes), separated by commas")
    parser.add_argument("--out", type=pathlib.Path, default=None)
    args = parser.parse_args()
    args.outer = [tuple(float(x) for x in pair.split(":")) for pair in args.outer.split(",")]
    wanted = [w for w in args.only.split(",") if w]
    results = {}
    for name, execute in cases(args):
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = execute()
        print(f"  loss {results[name]['loss']:.4f} in {results[name]['seconds']:.0f} s", file=sys.stderr, flush=True)
        if args.out:
            args.out.write_text(json.dumps(results, indent=1))
    print(report(results, args))


if __name__ == "__main__":
    main()
