#!/usr/bin/env python3
"""Compiles the kernels for every architecture with nvcc, and fails when one takes more of a GPU than the bounds allow.

Usage: kernel_resources.py [--object FILE] [--renew]

For each kernel and architecture ptxas says how many registers a thread takes, how much shared memory a block takes, and how many
bytes it spills. Occupancy, the share of the threads that a multiprocessor can hold, follows from the architecture's limits. The
worst of each kernel over the architectures is compared with kernel_bounds.txt beside this script; --renew writes that file.

  --object FILE  keep the object of all architectures

nvcc: that of $CUDACXX, else the first in PATH, else the wheels' in the environment of scripts/interop.sh --nvcc.
Exit codes: 0 every kernel is within its bounds, 1 one is not or does not compile, 77 there is no nvcc.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BOUNDS = HERE / "kernel_bounds.txt"
SOURCE = ROOT / "worker/cuda/kernel_launch.cu"
THREADS = 256  # of a block: kBlockThreads

# Threads, blocks, and bytes of shared memory of a multiprocessor (CUDA C++ programming guide, technical specifications per
# compute capability). Every block takes 1 KiB of shared memory more than it declares.
LIMITS = {80: (2048, 32, 164 << 10), 86: (1536, 16, 100 << 10), 89: (1536, 24, 100 << 10), 90: (2048, 32, 228 << 10),
          100: (2048, 32, 228 << 10), 120: (1536, 24, 100 << 10)}
REGISTERS = 65536
REGISTERS_AT_ONCE = 256  # allocated to a warp

CODECS = {"Fp32Code": "fp32", "HalfCode<(atl::CodecKind)2>": "fp16", "HalfCode<(atl::CodecKind)3>": "bf16", ", 8u, 127>": "int8",
          ", 4u, 7>": "int4", "E3m0Format": "e3m0", "TopK<64u, true": "topk64", "TopK<128u, true": "topk128",
          "TopK<64u, false": "topk64_bf16", "TopK<128u, false": "topk128_bf16"}


def find_nvcc():
    """The path of nvcc, or None."""
    named = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if named:
        return named
    python = subprocess.run([ROOT / "scripts/interop.sh", "--nvcc", "--python"], capture_output=True, text=True, check=True)
    found = sorted(pathlib.Path(python.stdout.strip()).parents[1].glob("lib/python3*/site-packages/nvidia/cu13/bin/nvcc"))
    return str(found[0]) if found else None


def flags():
    """As CMake compiles them: worker/cuda/CMakeLists.txt has the only list."""
    text = (ROOT / "worker/cuda/CMakeLists.txt").read_text()
    return re.search(r"set\(ATOLL_NVCC_FLAGS ([^)]*)\)", text).group(1).split()


def compile_kernels(nvcc, target):
    """What ptxas says of all architectures."""
    command = [nvcc, *flags(), "-I", str(ROOT), "-Xptxas", "-v", "--threads", "2", "-c", str(SOURCE), "-o", str(target)]
    for arch in LIMITS:
        command += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kernel_resources: {nvcc} failed:\n{done.stdout}{done.stderr}")
    return subprocess.run(["c++filt"], input=done.stdout + done.stderr, capture_output=True, text=True, check=True).stdout


def name_of(entry):
    """A short name of an entry function, None for one that moves no vectors."""
    kernel = re.search(r"Launched<atl::device::(\w+)<", entry)
    if kernel is None:
        return None
    codec = next(name for pattern, name in CODECS.items() if pattern in entry)
    if kernel.group(1).startswith("Add"):
        return f"{codec} add"
    return f"{codec} push {'moving_average' if 'Feedback)1' in entry else 'carry'}"


def occupancy(arch, registers, shared):
    threads, blocks, memory = LIMITS[arch]
    of_warp = -(-registers * 32 // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    fit = min(blocks, threads // THREADS, REGISTERS // of_warp * 32 // THREADS, memory // (shared + 1024))
    return 100 * fit * THREADS // threads


def measure(text):
    """name -> {arch: (registers, shared, spilled, occupancy)}."""
    found = {}
    pattern = re.compile(r"Compiling entry function '(.*)' for 'sm_(\d+)'\n(?:.*\n)*?.*?(\d+) bytes spill stores, (\d+) bytes spill loads\n"
                         r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?")
    for match in pattern.finditer(text):
        name, arch = name_of(match.group(1)), int(match.group(2))
        if name is None:
            continue
        registers, shared = int(match.group(5)), int(match.group(6) or 0)
        spilled = int(match.group(3)) + int(match.group(4))
        found.setdefault(name, {})[arch] = (registers, shared, spilled, occupancy(arch, registers, shared))
    return found


def worst(of_archs):
    columns = list(zip(*of_archs.values()))
    return max(columns[0]), max(columns[1]), max(columns[2]), min(columns[3])


def bound_of(of_archs):
    """Registers rounded up to a multiple of 8: other versions of nvcc may take one or two more."""
    registers, shared, spilled, _ = worst(of_archs)
    registers = -(-registers // 8) * 8
    return registers, shared, spilled, min(occupancy(arch, registers, shared) for arch in LIMITS)


def read_bounds():
    lines = [line.split() for line in BOUNDS.read_text().splitlines() if line and not line.startswith("#")]
    return {" ".join(fields[:-4]): tuple(map(int, fields[-4:])) for fields in lines}


def check(found):
    bounds, bad = read_bounds(), []
    if set(bounds) != set(found):
        bad.append(f"kernels and {BOUNDS.name} differ in: {', '.join(sorted(set(bounds) ^ set(found)))}; renew it with --renew")
    for name in sorted(set(bounds) & set(found)):
        missing = set(LIMITS) - set(found[name])
        if missing:
            bad.append(f"{name}: not compiled for sm_{min(missing)}")
        now, bound = worst(found[name]), bounds[name]
        for what, value, most in zip(("registers", "bytes of shared memory", "spilled bytes"), now, bound):
            if value > most:
                bad.append(f"{name}: {value} {what}, the bound is {most}")
        if now[3] < bound[3]:
            bad.append(f"{name}: occupancy {now[3]} %, the bound is {bound[3]} %")
    return bad


def check_symbols(target):
    """The object offers the launches, and needs only CUDA's runtime, the core, Abseil and the C++ library."""
    listed = subprocess.run(["nm", "-C", "--extern-only", str(target)], capture_output=True, text=True, check=True).stdout
    offered = set(re.findall(r" T atl::(\w+)\(", listed))
    bad = [f"the object has no function {name}" for name in sorted({"HasKernels", "QueuePush", "QueueAdd"} - offered)]
    for symbol in re.findall(r"^ +U (.*)$", listed, re.MULTILINE):
        if not re.match(r"(cuda|__cuda|atl::CodecFor|absl::|std::|__cxa|__gxx|_Unwind|operator |mem|strlen|atexit|__stack_chk|_GLOBAL_|__dso)", symbol):
            bad.append(f"the object needs {symbol}")
    return bad


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--object")
    parser.add_argument("--renew", action="store_true")
    options = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print("kernel_resources: no nvcc: not in CUDACXX, not in PATH, and scripts/interop.sh --nvcc has not run; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        target = options.object or pathlib.Path(folder) / "kernels.o"
        found = measure(compile_kernels(nvcc, target))
        bad = check_symbols(target)
    print("Worst of " + ", ".join(f"sm_{arch}" for arch in LIMITS) + ":\n")
    print("| kernel | registers | shared memory (bytes) | spilled (bytes) | occupancy |\n|---|---|---|---|---|")
    for name, of_archs in sorted(found.items()):
        print("| {} | {} | {} | {} | {} % |".format(name, *worst(of_archs)))
    if options.renew:
        lines = ["{} {} {} {} {}".format(name, *bound_of(of_archs)) for name, of_archs in sorted(found.items())]
        BOUNDS.write_text("# kernel, registers, bytes of shared memory, spilled bytes (at most), occupancy in percent (at least).\n"
                          "# Written by kernel_resources.py --renew.\n" + "\n".join(lines) + "\n")
    bad += check(found)
    for line in bad:
        print(f"kernel_resources: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
