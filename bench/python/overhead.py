#!/usr/bin/env python3
"""Overhead of the Python package: a PyTorch loop with and without Atoll, on one machine.

Usage: overhead.py [--bin DIR] [--library FILE] [--steps N] [--h N] [--width N] [--layers N] [--batch N] [--threads N] [--repeat N] [--json]

A transformer trains on random tokens: alone, and in blocking and overlapped runs with float32 and with e3m0. Each measurement is a process
of its own, and they take turns. The run has one worker, so nobody waits for others; the coordinator and the engine use the same cores.
Columns: steps per second, exchanges included; milliseconds of a step inside a round (median); seconds of an exchange, which only a blocking
run waits for; the loss of speed; peak memory of the loop beyond the loop alone, and of the engine; seconds of atoll.join. The first and the
last round do not count.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY, CONTEXT = 512, 128
CODECS = {"fp32": "{push: fp32, pull_delta: none}", "e3m0": "{push: e3m0, pull_delta: e3m0}"}
OVERLAPPED = "sync: {mode: overlapped, fragments: 4, delay_steps: 5}\n"


def make(arguments):
    import torch
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(arguments.width, 4, 4 * arguments.width, dropout=0.0, batch_first=True, norm_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, arguments.width), torch.nn.TransformerEncoder(layer, arguments.layers),
                                torch.nn.Linear(arguments.width, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [torch.randint(0, VOCABULARY, (arguments.batch, CONTEXT)) for _ in range(8)]
    return torch, model, optimizer, batches


def one_process(arguments):
    """Trains, and prints its numbers as JSON."""
    torch, model, optimizer, batches = make(arguments)

    def step(ids):
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    marks, found = [], {}
    step(batches[0])  # what is made once: buffers, moments
    if arguments.address is None:
        for count in range(arguments.steps):
            marks.append(time.perf_counter())
            step(batches[count % len(batches)])
    else:
        import atoll
        begin = time.perf_counter()
        with atoll.join(arguments.address, model, optimizer, name="w0", state_dir=arguments.state, progress=False,
                        log_file=arguments.state + ".log") as run:
            found["join_s"] = time.perf_counter() - begin
            for ids in run.steps(batches):
                marks.append(time.perf_counter())
                step(ids)
                if len(marks) == arguments.steps:
                    found["engine_mib"] = engine_peak_mib()
    steps = [later - earlier for earlier, later in zip(marks, marks[1:])]
    # Without the first round, whose exchange fills caches, and the last one, after which the worker leaves.
    steps = steps[arguments.h:arguments.steps - arguments.h]
    ends = range(arguments.h - 1, len(steps), arguments.h)
    inside = statistics.median(s for i, s in enumerate(steps) if i not in ends)
    found.update(steps_per_s=len(steps) / sum(steps), step_ms=1e3 * inside, exchange_s=statistics.mean(steps[i] - inside for i in ends),
                 peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, parameters=sum(p.numel() for p in model.parameters()))
    print(json.dumps(found))


def engine_peak_mib():
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if fields["Name"].strip().startswith("atoll-engine") and int(fields["PPid"]) == os.getpid():
            return int(fields["VmHWM"].split()[0]) / 1024
    return 0.0


def measure(arguments, name):
    """The numbers of one process; `name` is a codec, and "overlapped" may follow. "alone": without Atoll."""
    codec = None if name == "alone" else name.split()[0]
    options = [f"--{name}={getattr(arguments, name)}" for name in ("steps", "h", "width", "layers", "batch", "threads")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "ATOLL_LIBRARY": str(arguments.library),
                   "ATOLL_ENGINE": str(arguments.bin / "atoll-engine"), "OMP_WAIT_POLICY": "passive"}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-overhead-"))
    coordinator = None
    try:
        if codec is not None:
            (folder / "run.yaml").write_text(
                f"run: {{name: overhead, workers: 1, rounds: {arguments.steps // arguments.h}}}\n"
                f"model: {{external: {{context: {CONTEXT}}}}}\ndata: {{mode: local}}\ncodec: {CODECS[codec]}\n"
                f"{OVERLAPPED if name.endswith('overlapped') else ''}"
                f"inner: {{steps: {arguments.h}, batch: {arguments.batch}, learning_rate: 1e-3}}\n")
            with open(folder / "coordinator.log", "wb") as log:
                coordinator = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", arguments.bin / "atoll-coordinator", "--config", folder / "run.yaml", "--data-dir",
                     folder / "run", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "",
                     "--port-file", folder / "ports.json"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            while not (folder / "ports.json").exists():
                if coordinator.poll() is not None:
                    raise SystemExit((folder / "coordinator.log").read_text()[-2000:])
                time.sleep(0.05)
            options += ["--address", json.loads((folder / "ports.json").read_text())["data"], "--state", str(folder / "state")]
        done = subprocess.run([sys.executable, "-B", __file__, "--one", *options], capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        if coordinator is not None:
            coordinator.kill()
            coordinator.wait()
        shutil.rmtree(folder, ignore_errors=True)


def median_of(measured):
    return {key: statistics.median(one[key] for one in measured) for key in measured[0]}


def table(results):
    alone = results["alone"]
    yield f"{alone['parameters'] / 1e6:.1f} M parameters, {alone['step_ms']:.0f} ms a step alone"
    yield ""
    yield "| loop | steps/s | lost | step inside a round, ms | exchange, s | memory of the loop, MiB more | engine, MiB | join, s |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, one in results.items():
        lost = 100 * (1 - one["steps_per_s"] / alone["steps_per_s"])
        more = f"{one['peak_mib'] - alone['peak_mib']:.0f} | {one['engine_mib']:.0f} | {one['join_s']:.2f}" if name != "alone" else "| |"
        exchange = f"{one['exchange_s']:.3f}" if name in CODECS else ""  # an overlapped run waits for none
        yield f"| {name} | {one['steps_per_s']:.3f} | {lost:.2f} % | {one['step_ms']:.2f} | {exchange} | {more} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/lib/libatoll_client.so.1")
    for name, value in (("steps", 250), ("h", 50), ("width", 256), ("layers", 4), ("batch", 8), ("threads", 1), ("repeat", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--state", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one_process(arguments)
        return
    arguments.steps -= arguments.steps % arguments.h
    arguments.bin, arguments.library = arguments.bin.resolve(), arguments.library.resolve()
    measured = {name: [] for name in ("alone", "fp32", "e3m0", "fp32 overlapped", "e3m0 overlapped")}
    for _ in range(arguments.repeat):
        for name, found in measured.items():
            found.append(measure(arguments, name))
    results = {name: median_of(found) for name, found in measured.items()}
    print(json.dumps(results, indent=1) if arguments.json else "\n".join(table(results)))


if __name__ == "__main__":
    main()
