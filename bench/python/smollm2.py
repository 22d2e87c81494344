#!/usr/bin/env python3
"""SmolLM2-135M's shape with random weights, trained by one C++ and one Python worker, exported, and loaded by transformers.

Usage: smollm2.py [--bin DIR] [--library FILE] [--rounds N] [--h N] [--batch N] [--context N] [--threads N] [--text FILE...] [--json]

transformers writes the first weights, and the coordinator imports them. atoll-worker and a loop with transformers' own model train the run;
the export of the last version is loaded by transformers again, and its loss is compared with the one that the run reports. Both workers use
the same texts, as bytes: the vocabulary of 49,152 is only the shape. Needs torch and transformers (`scripts/interop.sh`), about 12 GB of
memory and 4 GB of disk.

Prints times, peak memory of each process, and bytes for each worker and round. Exit code 1: the losses differ by more than 1e-4.
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVALUATED = 8  # batches of an evaluation
CODEC = "{push: e3m0, pull_delta: e3m0}"
MIB = 1 << 20


def shape():
    """SmolLM2-135M, as the config.json of its folder on the hub has it."""
    import transformers
    return transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        max_position_embeddings=8192, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0})


def peak_mib(pid):
    """The peak memory of a process, or 0 after its end."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def engine_of(parent):
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if name.startswith("atoll-engine") and int(rest[1]) == parent:
            return int(path.parent.name)
    return 0


def windows(tokens, context, count):
    """The first samples of a token file, each with the token after it."""
    import numpy
    import torch
    values = numpy.fromfile(tokens, "<u2", offset=1024).astype("i8")
    return torch.from_numpy(numpy.stack([values[at * context:at * context + context + 1] for at in range(count)]))


def loss_of(model, rows):
    import torch
    return torch.nn.functional.cross_entropy(model(rows[:, :-1]).logits.flatten(0, 1), rows[:, 1:].flatten())


def python_worker(arguments):
    """The loop of the Python worker, in a process of its own; prints its numbers as JSON."""
    import torch
    import transformers

    import atoll
    torch.set_num_threads(arguments.threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.folder / "saved", dtype=torch.float32).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    rows = windows(arguments.folder / "tokens/train_000.bin", arguments.context, 64)
    batches = [rows[at:at + arguments.batch] for at in range(0, 64 - arguments.batch + 1, arguments.batch)]
    steps, engine = [], 0.0
    begin = time.perf_counter()
    with atoll.join(arguments.address, model, optimizer, name="python", state_dir=arguments.folder / "python",
                    log_file=arguments.folder / "python.log", progress=False) as run:
        joined = time.perf_counter() - begin
        for batch in run.steps(itertools.cycle(batches)):
            start = time.perf_counter()
            loss_of(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            steps.append(time.perf_counter() - start)
            engine = max(engine, peak_mib(engine_of(os.getpid())))
    print(json.dumps({"join_s": joined, "step_s": sum(steps) / len(steps), "steps": len(steps), "peak_mib": peak_mib(os.getpid()), "engine_mib": engine}))


class Run:
    """The processes of the run, all of which end with this one."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.processes = arguments, folder, []
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "ATOLL_LIBRARY": str(arguments.library),
                            "ATOLL_ENGINE": str(arguments.bin / "atoll-engine"), "OMP_WAIT_POLICY": "passive",
                            "OMP_NUM_THREADS": str(arguments.threads)}

    def start(self, *command, log, **more):
        with open(self.folder / log, "wb") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], stderr=out, stdin=subprocess.DEVNULL,
                                       env=self.environment, **{"stdout": out, **more})
        self.processes.append(process)
        return process

    def ports(self, coordinator):
        while not (self.folder / "ports.json").exists():
            if coordinator.poll() is not None:
                raise SystemExit((self.folder / "coordinator.log").read_text()[-2000:])
            time.sleep(0.05)
        return json.loads((self.folder / "ports.json").read_text())

    def ctl(self, found, *arguments):
        done = subprocess.run([self.arguments.bin / "atollctl", "--admin", found["admin"], "--coordinator", found["data"], *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"atollctl {arguments[0]}: {done.stderr}")
        return done.stdout

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(arguments, folder):
    import torch
    import transformers
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    numbers = {}
    model = transformers.LlamaForCausalLM(shape())
    numbers["parameters"] = sum(p.numel() for p in model.parameters())
    model.save_pretrained(folder / "saved")
    subprocess.run([arguments.bin / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", folder / "tokens", *arguments.text], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    held_out = windows(folder / "tokens/val.bin", arguments.context, EVALUATED * arguments.batch)
    with torch.no_grad():
        numbers["first_loss"] = loss_of(model.eval(), held_out).item()
    del model
    (folder / "run.yaml").write_text(
        f"run: {{name: smollm2, workers: 2, rounds: {arguments.rounds}}}\n"
        f"model: {{preset: smollm2-135m, llama: {{context: {arguments.context}}}}}\n"
        f"data: {{tokenizer: bytes, mode: local}}\ncodec: {CODEC}\nevaluation: {{every: 1, batches: {EVALUATED}}}\n"
        f"inner: {{steps: {arguments.h}, batch: {arguments.batch}, learning_rate: {arguments.learning_rate}}}\n")
    run = Run(arguments, folder)
    try:
        train(arguments, folder, run, numbers)
    finally:
        run.end()
    start = time.perf_counter()
    trained = transformers.AutoModelForCausalLM.from_pretrained(folder / "trained", dtype=torch.float32).eval()
    numbers["load_s"] = time.perf_counter() - start
    with torch.no_grad():
        numbers["loss_in_transformers"] = loss_of(trained, held_out).item()
    return numbers


def train(arguments, folder, run, numbers):
    start = time.perf_counter()
    hub = run.start(arguments.bin / "atoll-coordinator", "--config", folder / "run.yaml", "--data-dir", folder / "run", "--import", folder / "saved",
                    "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "",
                    "--port-file", folder / "ports.json", log="coordinator.log")
    found = run.ports(hub)
    numbers["import_s"] = time.perf_counter() - start
    start = time.perf_counter()
    native = run.start(arguments.bin / "atoll-worker", "--coordinator", found["data"], "--name", "native", "--data", folder / "tokens", "--state-dir",
                       folder / "native", "--threads", arguments.threads, "--device", "cpu", log="native.log")
    mine = run.start(sys.executable, "-B", __file__, "--one", "--address", found["data"], "--folder", folder, *options_of(arguments),
                     log="python.err", stdout=subprocess.PIPE)
    native_peak = 0.0
    while native.poll() is None:
        native_peak = max(native_peak, peak_mib(native.pid))
        time.sleep(0.1)
    said = mine.communicate()[0]
    if native.returncode != 0 or mine.returncode != 0:
        raise SystemExit(f"a worker ended early: {(folder / 'native.log').read_text()[-2000:]}\n{(folder / 'python.err').read_text()[-2000:]}")
    numbers["training_s"] = time.perf_counter() - start
    numbers["native_mib"], numbers["python"] = native_peak, json.loads(said)
    numbers["coordinator_mib"] = peak_mib(hub.pid)
    start = time.perf_counter()
    run.ctl(found, "export", "--format", "hf", "--out", folder / "trained")
    numbers["export_s"] = time.perf_counter() - start
    numbers["export_mib"] = sum(path.stat().st_size for path in (folder / "trained").iterdir()) / MIB
    points = [json.loads(line) for line in run.ctl(found, "metrics", "export", "--format", "jsonl").splitlines()]
    losses = {int(point["version"]): point["value"] for point in points if point["name"] == "validation/loss"}
    numbers["imported_loss"], numbers["last_loss"] = losses[0], losses[arguments.rounds]
    numbers["workers"] = json.loads(run.ctl(found, "workers", "list", "--all", "--json"))["workers"]
    hub.send_signal(signal.SIGTERM)
    hub.wait()


def options_of(arguments):
    return [f"--{name.replace('_', '-')}={getattr(arguments, name)}" for name in ("h", "batch", "context", "threads", "learning_rate")]


def table(arguments, found):
    python = found["python"]
    yield f"{found['parameters'] / 1e6:.1f} M parameters, {arguments.rounds} rounds of {arguments.h} steps of {arguments.batch} x {arguments.context} tokens"
    yield ""
    yield "| | |\n|---|---|"
    yield f"| import of model.safetensors, coordinator ready | {found['import_s']:.1f} s |"
    yield f"| both workers, from their start to the end of the run | {found['training_s']:.0f} s |"
    yield f"| Python worker: join; one step | {python['join_s']:.1f} s; {python['step_s']:.2f} s |"
    yield f"| export, {found['export_mib']:.0f} MiB; load in transformers | {found['export_s']:.1f} s; {found['load_s']:.1f} s |"
    yield (f"| peak memory: coordinator, atoll-worker, Python worker, its engine | {found['coordinator_mib']:.0f}, {found['native_mib']:.0f}, "
           f"{python['peak_mib']:.0f}, {python['engine_mib']:.0f} MiB |")
    for worker in sorted(found["workers"], key=lambda worker: worker["name"]):
        up, down = int(worker.get("push_bytes", 0)), int(worker.get("pull_bytes", 0))
        yield f"| bytes of {worker['name']}: up, down | {up / MIB:.1f}, {down / MIB:.1f} MiB |"
    yield f"| held-out loss of the imported weights: transformers, run | {found['first_loss']:.6f}, {found['imported_loss']:.6f} |"
    yield f"| held-out loss after the last round: run, transformers | {found['last_loss']:.6f}, {found['loss_in_transformers']:.6f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/lib/libatoll_client.so.1")
    parser.add_argument("--text", type=pathlib.Path, nargs="+", default=sorted((ROOT / "docs").rglob("*.md")))
    for name, value in (("rounds", 2), ("h", 10), ("batch", 2), ("context", 128), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        python_worker(arguments)
        return 0
    arguments.bin, arguments.library = arguments.bin.resolve(), arguments.library.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-smollm2-"))
    try:
        found = measure(arguments, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=1) if arguments.json else "\n".join(table(arguments, found)))
    pairs = ((found["first_loss"], found["imported_loss"]), (found["last_loss"], found["loss_in_transformers"]))
    return 0 if all(abs(one - other) <= 1e-4 * other for one, other in pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
