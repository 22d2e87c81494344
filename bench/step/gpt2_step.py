#!/usr/bin/env python3
"""Speed of one inner step of GPT-2 124M on a GPU: Atoll's C++ trainer against PyTorch, eager and under torch.compile.

    python3 bench/step/gpt2_step.py --bin build/cuda/bin [--batches 8,32] [--json FILE] [--markdown FILE] [--trace FILE]

All sides train in bfloat16 over float32 weights with context 1024, AdamW and clipped gradients. PyTorch has what makes it fast: autocast,
scaled_dot_product_attention, fused AdamW, tokens that are on the GPU already, and no wait for the GPU within a block of steps. Atoll's step
is the worker's own: it reads its tokens from files, and its result is read after every step. The sides run one after the other, so that
each has the GPU and its memory alone. --warm compiles for torch.compile and measures nothing. --trace also writes which kernels a step
of Atoll runs, with the first of the batches.
"""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from step_speed import Side, write_dataset

MODEL = dict(layers=12, heads=12, width=768, context=1024, vocabulary=50257)
ALIGNED = 50304  # a vocabulary whose rows the matrix units read aligned; those who know choose it
SIDES = {"atoll": "Atoll", "eager": "PyTorch eager", "aligned": f"PyTorch eager, vocabulary {ALIGNED}", "compile": "PyTorch, `torch.compile`"}
GOAL = 1.1  # of eager's speed
PEAK = {"H100": 989.4e12, "H200": 989.4e12, "A100": 312e12}  # of dense bfloat16 products, by the data sheets


def gpu(query):
    done = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].strip()


def parameters():
    width, layers = MODEL["width"], MODEL["layers"]
    block = 12 * width * width + 13 * width
    return (MODEL["vocabulary"] + MODEL["context"]) * width + layers * block + 2 * width


def flops_per_token():
    """6 for each parameter, and attention's two products, of which the causal mask leaves half."""
    return 6 * parameters() + 6 * MODEL["layers"] * MODEL["context"] * MODEL["width"]


def make_model():
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    width, heads = MODEL["width"], MODEL["heads"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attention(self, x):
            q, k, v = (part.view(*x.shape[:2], heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
            return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))

        def forward(self, x):
            x = x + self.attention(self.ln_1(x))
            return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(MODEL["vocabulary"], width), nn.Embedding(MODEL["context"], width)
            self.h = nn.ModuleList(Block() for _ in range(MODEL["layers"]))
            self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, MODEL["vocabulary"], bias=False)
            self.lm_head.weight = self.wte.weight
            for p in self.parameters():
                nn.init.normal_(p, 0, 0.02) if p.dim() > 1 else None

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe.weight[:tokens.size(1)]
            for block in self.h:
                x = block(x)
            logits = self.lm_head(self.ln_f(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    torch.manual_seed(1337)
    return Gpt()


def python_side(args):
    import torch
    if args.python_side == "aligned":
        MODEL["vocabulary"] = ALIGNED
    with torch.device("cuda"):
        model = make_model()
        batches = [torch.randint(MODEL["vocabulary"], (args.batch, MODEL["context"] + 1)) for _ in range(4)]
    assert sum(p.numel() for p in model.parameters()) == parameters()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.99), fused=True)
    run = torch.compile(model) if args.python_side == "compile" else model

    def step(window):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(window[:, :-1], window[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for line in sys.stdin:
        torch.cuda.synchronize()
        begin, steps = time.perf_counter(), int(line)
        for i in range(steps):
            loss = step(batches[i % len(batches)])
        torch.cuda.synchronize()
        took = (time.perf_counter() - begin) * 1e3 / steps
        assert torch.isfinite(loss)
        print(*[took] * steps, flush=True)


def measure(args, folder, side, batch, trace=None):
    """Milliseconds of a step (of each block), and the GPU's memory that the side holds."""
    before = int(gpu("memory.used"))
    if side == "atoll":
        command = [args.bin / "atoll-step-speed", "--tokens", folder, "--device", "cuda", "--bf16", "--batch", str(batch)]
        for name, value in MODEL.items():
            command += [f"--{name}", str(value)]
        command += ["--trace", trace] if trace else []
    else:
        command = [sys.executable, __file__, "--python-side", side, "--batch", str(batch)]
    child = Side(command, os.environ)
    child.run(args.block)  # warm up, and compile
    times = [statistics.mean(child.run(args.block)) for _ in range(1 if args.warm else args.blocks)]
    used = int(gpu("memory.used")) - before
    child.close()
    return times, used


def row_of(side, batch, times, used, peak):
    ms = statistics.median(times)
    rate = batch * MODEL["context"] / ms * 1e3
    return dict(side=side, batch=batch, ms=ms, best_ms=min(times), worst_ms=max(times), tokens_per_s=rate,
                mfu=rate * flops_per_token() / peak, memory_mib=used)


def markdown(machine, rows):
    lines = [f"GPT-2 124M, context 1024, bfloat16, on one {machine['gpu']} (driver {machine['driver']}, LibTorch {machine['torch']}, CUDA "
             f"{machine['cuda']}):", "", "| batch | | ms a step | tokens/s | MFU | GPU memory, GiB | of eager's time |",
             "|---|---|---|---|---|---|---|"]
    eager = {row["batch"]: row["ms"] for row in rows if row["side"] == "eager"}
    for row in rows:
        ratio = f"{row['ms'] / eager[row['batch']]:.2f}" if row["batch"] in eager else ""
        lines.append(f"| {row['batch']} | {SIDES[row['side']]} | {row['ms']:.1f} | {row['tokens_per_s']:,.0f} | {row['mfu']:.1%} | "
                     f"{row['memory_mib'] / 1024:.1f} | {ratio} |")
    ratios = {batch: eager[batch] / row["ms"] for row in rows if row["side"] == "atoll" for batch in [row["batch"]] if batch in eager}
    if ratios:
        met = "met" if min(ratios.values()) >= GOAL else "missed"
        lines += ["", f"Goal: at least {GOAL} of eager's speed. " +
                  ", ".join(f"batch {batch}: {ratio:.2f}" for batch, ratio in ratios.items()) + f", {met}."]
    return "\n".join(lines) + "\n"


def write_results(args, machine, rows):
    if args.json:
        args.json.write_text(json.dumps(dict(machine=machine, model=MODEL, rows=rows), indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(markdown(machine, rows))


def kernels(trace, steps):
    """Microseconds of each kernel in a step, the longest first."""
    events = [e for e in json.loads(pathlib.Path(trace).read_text())["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    took, count = collections.Counter(), collections.Counter()
    for event in events:
        took[event["name"]] += event["dur"] / steps
        count[event["name"]] += 1 / steps
    span = (max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)) / steps if events else 0
    lines = [f"{len(events) / steps:.0f} kernels a step, busy {sum(took.values()) / 1e3:.2f} of {span / 1e3:.2f} ms"]
    lines += [f"{us:9.0f} us {count[name]:7.1f} x {name[:150]}" for name, us in took.most_common(40)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cuda/bin"))
    parser.add_argument("--batches", default="8,32")
    parser.add_argument("--sides", default="atoll,eager,aligned,compile")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--block", type=int, default=10, help="steps per block")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--python-side", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.python_side:
        return python_side(args)
    if args.warm:
        for batch in map(int, args.batches.split(",")):
            measure(args, None, "compile", batch)
        return None
    import torch
    name = gpu("name")
    machine = dict(gpu=name, driver=gpu("driver_version"), torch=torch.__version__, cuda=torch.version.cuda)
    peak = next((value for key, value in PEAK.items() if key in name), float("nan"))
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(folder, MODEL["vocabulary"], args.bin)
        for batch in map(int, args.batches.split(",")):
            for side in args.sides.split(","):
                try:
                    rows.append(row_of(side, batch, *measure(args, folder, side, batch), peak))
                except (SystemExit, subprocess.CalledProcessError) as error:
                    print(f"{side}, batch {batch}: {error}", file=sys.stderr)
                    failed = 1
                    continue
                print(json.dumps(rows[-1]), flush=True)
                write_results(args, machine, rows)  # what is measured stays when the rest is stopped
        if args.trace and "atoll" in args.sides:
            with tempfile.TemporaryDirectory() as traces:
                path = os.path.join(traces, "trace.json")
                measure(args, folder, "atoll", int(args.batches.split(",")[0]), path)
                args.trace.write_text(kernels(path, args.block))
    print(markdown(machine, rows))
    return failed


if __name__ == "__main__":
    sys.exit(main())
