#!/usr/bin/python3
"""Speed of one inner step: Atoll's C++ trainer against the same model written plainly in Python, with the same LibTorch.

    /usr/bin/python3 bench/step/step_speed.py --bin build/release/bin [--json FILE]
    PYTHON bench/step/step_speed.py --bin build/libtorch-2.13.0/bin --compiled --precisions fp32
    PYTHON bench/step/step_speed.py --bin build/libtorch-2.13.0/bin --compiled --model gpt2 --contexts 64,1024 --blocks 4 --block 3

The small model is nanoGPT's CPU configuration (4 layers, 4 heads, width 128, context 64, batch 12, no dropout), with vocabulary 65 and
256, one and two threads, float32 and bf16: two minutes. gpt2 is GPT-2 124M in batches of 4, float32, two threads: ten minutes. All
sides run in one go and alternate in blocks of steps, so that they see the same machine; the figures are medians. All get the same BLAS
kernels (OPENBLAS_CORETYPE as the C++ program would choose it); --as-installed leaves Python with what the distribution's OpenBLAS
chooses by itself. --compiled adds a third side, the same Python under torch.compile. PYTHON is the one whose PyTorch has the LibTorch
that the programs were built against (scripts/libtorch_check.sh --bench builds them).
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {"small": dict(layers=4, heads=4, width=128, context=64, batch=12), "gpt2": dict(layers=12, heads=12, width=768, context=1024, batch=4)}
SHAPE = ("layers", "heads", "width", "context", "batch")


def best_blas_core():
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "").split()
    if all(f in flags for f in ("avx512f", "avx512dq", "avx512bw", "avx512vl")):
        return "SKYLAKEX"
    return "HASWELL" if "avx2" in flags and "fma" in flags else None


def cpu_name():
    lines = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    amx = "with AMX" if "amx_bf16" in open("/proc/cpuinfo").read() else "without AMX"
    return f"{lines[0] if lines else platform.machine()}, {amx}"


def write_dataset(folder, vocabulary, programs):
    import numpy as np
    rng = np.random.default_rng(1)
    for name, tokens in (("train_000.bin", 1_000_000), ("val.bin", 10_000)):
        header = np.zeros(256, "<i4")
        header[:3] = 20240520, 1, tokens
        with open(os.path.join(folder, name), "wb") as f:
            f.write(header.tobytes())
            f.write(rng.integers(0, vocabulary, tokens).astype("<u2").tobytes())
    subprocess.run([programs / "atoll-data", "adopt", folder, "--tokenizer", "random", "--vocabulary", str(vocabulary)],
                   check=True, stdout=subprocess.DEVNULL)


# The Python side: nanoGPT's model.py and train.py, shortened.
def python_side(args):
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    torch.manual_seed(1337)
    width, heads, context, batch = args.width, args.heads, args.context, args.batch

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.flash = hasattr(F, "scaled_dot_product_attention")
            self.register_buffer("mask", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

        def attention(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(C, dim=2)
            k = k.view(B, T, heads, C // heads).transpose(1, 2)
            q = q.view(B, T, heads, C // heads).transpose(1, 2)
            v = v.view(B, T, heads, C // heads).transpose(1, 2)
            if self.flash:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
                att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
                y = F.softmax(att, dim=-1) @ v
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

        def forward(self, x):
            x = x + self.attention(self.ln_1(x))
            return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(args.vocabulary, width), nn.Embedding(context, width)
            self.h = nn.ModuleList(Block() for _ in range(args.layers))
            self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, args.vocabulary, bias=False)
            self.lm_head.weight = self.wte.weight
            for p in self.parameters():
                nn.init.normal_(p, 0, 0.02) if p.dim() > 1 else None

        def forward(self, idx, targets):
            x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
            for block in self.h:
                x = block(x)
            logits = self.lm_head(self.ln_f(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.99))
    data = np.memmap(os.path.join(args.tokens, "train_000.bin"), dtype=np.uint16, mode="r", offset=1024)

    compiled = torch.compile(model) if args.compiled else model

    def step():
        ix = torch.randint(len(data) - context, (batch,))
        x = torch.stack([torch.from_numpy(data[i:i + context].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + context].astype(np.int64)) for i in ix])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            loss = compiled(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        print(*times, flush=True)


class Side:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.times = []

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return [float(x) for x in line.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(args, folder, shape, vocabulary, threads, bf16):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    core = best_blas_core()
    python_environment = dict(environment)
    if core and not args.as_installed:
        python_environment.setdefault("OPENBLAS_CORETYPE", core)
        environment.setdefault("OPENBLAS_CORETYPE", core)
    common = ["--tokens", folder, "--vocabulary", str(vocabulary), "--threads", str(threads)] + (["--bf16"] if bf16 else [])
    for name in SHAPE:
        common += [f"--{name}", str(shape[name])]
    plain = [sys.executable, __file__, "--python-side"] + common
    sides = dict(cpp=Side([args.bin / "atoll-step-speed"] + common, environment), python=Side(plain, python_environment))
    if args.compiled:
        sides["compiled"] = Side(plain + ["--compiled"], python_environment)
    for side in sides.values():
        side.run(args.block)  # warm up
    for _ in range(args.blocks):
        for side in sides.values():
            side.times += side.run(args.block)
    for side in sides.values():
        side.close()
    row = dict(shape, vocabulary=vocabulary, threads=threads, precision="bf16" if bf16 else "fp32", steps=args.block * args.blocks)
    for name, side in sides.items():
        row[f"{name}_ms"], row[f"{name}_best_ms"] = statistics.median(side.times), min(side.times)
    return row


def table_row(row):
    cells = [row["context"], row["vocabulary"], row["threads"], row["precision"], f"{row['cpp_ms']:.1f}", f"{row['python_ms']:.1f}",
             f"{row['cpp_ms'] / row['python_ms']:.2f}"]
    if "compiled_ms" in row:
        cells += [f"{row['compiled_ms']:.1f}", f"{row['cpp_ms'] / row['compiled_ms']:.2f}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--block", type=int, default=20, help="steps per block")
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--contexts", help="default: the model's")
    parser.add_argument("--vocabularies", help="default: 65,256; 50257 for gpt2")
    parser.add_argument("--thread-counts", help="default: 1,2; 2 for gpt2")
    parser.add_argument("--precisions", help="default: fp32,bf16; fp32 for gpt2")
    parser.add_argument("--compiled", action="store_true", help="also measure torch.compile")
    parser.add_argument("--as-installed", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--python-side", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tokens", help=argparse.SUPPRESS)
    parser.add_argument("--vocabulary", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bf16", action="store_true", help=argparse.SUPPRESS)
    for name in SHAPE:
        parser.add_argument(f"--{name}", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.python_side:
        return python_side(args)
    small, model = args.model == "small", MODELS[args.model]
    contexts = [int(context) for context in (args.contexts or str(model["context"])).split(",")]
    thread_counts = [int(count) for count in (args.thread_counts or ("1,2" if small else "2")).split(",")]
    precisions = (args.precisions or ("fp32,bf16" if small else "fp32")).split(",")
    rows = []
    titles = ["context", "vocabulary", "threads", "precision", "C++ ms", "Python ms", "C++ / Python"]
    titles += ["torch.compile ms", "C++ / torch.compile"] if args.compiled else []
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for vocabulary in map(int, (args.vocabularies or ("65,256" if small else "50257")).split(",")):
        with tempfile.TemporaryDirectory() as folder:
            write_dataset(folder, vocabulary, args.bin)
            for context, precision, threads in itertools.product(contexts, precisions, thread_counts):
                rows.append(compare(args, folder, dict(model, context=context), vocabulary, threads, precision == "bf16"))
                print(table_row(rows[-1]), flush=True)
    if args.json:
        import torch
        machine = dict(cpu=cpu_name(), cores=os.cpu_count(), torch=torch.__version__,
                       openblas_core="as installed" if args.as_installed else best_blas_core())
        args.json.write_text(json.dumps(dict(machine=machine, rows=rows), indent=1) + "\n")


if __name__ == "__main__":
    main()
