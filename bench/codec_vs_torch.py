#!/usr/bin/env python3
"""The codecs and the closing of a round against the same in PyTorch, on one thread of one machine, one after the other.

    /usr/bin/python3 bench/codec_vs_torch.py --bin build/release/bin

Both count processor time, so that a busy machine disturbs the ratio less. PyTorch's side is written as public code
does it: whole-tensor operations, positions of topk left unpacked as int16.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch

ELEMENTS = 1 << 24
ROOT = pathlib.Path(__file__).resolve().parent.parent


def int8_encode(x):
    blocks = x.view(-1, 256)
    scale = blocks.abs().amax(1, keepdim=True) / 127
    return torch.round(blocks / scale).to(torch.int8), scale


def int8_decode(q, scale):
    return (q.to(torch.float32) * scale).view(-1)


def e3m0_encode(x):
    blocks = x.view(-1, 256)
    scale = blocks.abs().amax(1, keepdim=True)
    ratio = blocks.abs() / scale
    level = torch.floor(torch.log2(ratio * (4 / 3))).add_(7).clamp_(0, 7).to(torch.uint8)
    code = level | ((blocks < 0) & (level > 0)).to(torch.uint8) << 3
    return code[:, :128] | code[:, 128:] << 4, scale


E3M0 = torch.tensor([0.0] + [2.0 ** (level - 7) for level in range(1, 8)])
E3M0 = torch.cat([E3M0, -E3M0])


def e3m0_decode(packed, scale):
    code = torch.cat([packed & 15, packed >> 4], 1).to(torch.int64)
    return (E3M0[code] * scale).view(-1)


def topk64_encode(x):
    blocks = x.view(-1, 4096)
    positions = torch.topk(blocks.abs(), 64, dim=1, sorted=False).indices
    values = blocks.gather(1, positions)
    size = values.abs()
    upper = size >= size.mean(1, keepdim=True)
    count = upper.sum(1, keepdim=True).clamp(min=1)
    high = (size * upper).sum(1, keepdim=True) / count
    low = (size * ~upper).sum(1, keepdim=True) / (64 - count).clamp(min=1)
    code = upper.to(torch.uint8) | (values < 0).to(torch.uint8) << 1
    packed = code[:, 0::4] | code[:, 1::4] << 2 | code[:, 2::4] << 4 | code[:, 3::4] << 6
    return positions.to(torch.int16), packed, torch.cat([low, high], 1)


def topk64_decode(positions, packed, levels):
    code = torch.stack([packed >> shift & 3 for shift in (0, 2, 4, 6)], 2).view(-1, 64)
    size = levels.gather(1, (code & 1).to(torch.int64))
    values = torch.where(code & 2 > 0, -size, size)
    out = torch.zeros(len(positions), 4096)
    return out.scatter_(1, positions.to(torch.int64), values).view(-1)


CODECS = {
    "fp32": (lambda x: (x,), lambda x: x),
    "bf16": (lambda x: (x.to(torch.bfloat16),), lambda x: x.to(torch.float32)),
    "int8": (int8_encode, int8_decode),
    "e3m0": (e3m0_encode, e3m0_decode),
    "topk64": (topk64_encode, topk64_decode),
}


def seconds(action, repeats):
    action()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def torch_times(repeats):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = torch.randn(ELEMENTS) * 0.01
    theta, momentum = torch.randn(ELEMENTS), torch.zeros(ELEMENTS)
    times = {}
    for name, (encode, decode) in CODECS.items():
        payloads = [encode(torch.randn(ELEMENTS) * 0.01) for _ in range(4)]

        def close():
            mean = torch.zeros(ELEMENTS)
            for payload in payloads:
                mean.add_(decode(*payload), alpha=0.25)
            momentum.mul_(0.9).add_(mean)
            theta.sub_(mean.add_(momentum, alpha=0.9), alpha=0.7)

        if name != "fp32":
            times["Encode", name] = seconds(lambda: encode(x), repeats)
        times["MergeFourAndStep", name] = seconds(close, repeats)
    return times


def our_times(binary):
    command = [binary, "--benchmark_filter=^(Encode|MergeFourAndStep)/", "--benchmark_format=json", "--benchmark_min_time=0.3"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        (result["name"].split("/")[0], result["label"]): result["cpu_time"] / 1000
        for result in json.loads(run.stdout)["benchmarks"]
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    ours = our_times(args.bin / "atoll-core-bench")
    theirs = torch_times(args.repeats)
    print(f"| what, 64 MiB of float32 | codec | here ms | PyTorch {torch.__version__} ms | times as fast |\n|---|---|---|---|---|")
    names = {"Encode": "encode", "MergeFourAndStep": "decode and merge 4, Nesterov"}
    for (what, codec), time_there in sorted(theirs.items()):
        time_here = ours[what, codec]
        print(f"| {names[what]} | {codec} | {1000 * time_here:.1f} | {1000 * time_there:.0f} | {time_there / time_here:.1f} |")


if __name__ == "__main__":
    main()
