#!/usr/bin/env python3
"""Runs one fuzz target for a bounded time, from its seeds and from what earlier runs found interesting.

Usage: fuzz.py --program ATOLL-FUZZ --seeds tests/fuzz/corpus --work FOLDER --seconds N TARGET

What is new is kept in FOLDER/TARGET. An input that crashes is left in FOLDER/crashes and printed; put it into
tests/fuzz/corpus/TARGET, where every build runs it, and mend what it found.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# A decoder that takes longer than this, or more memory, for an input of some kilobytes is as much a find as a crash.
TIMEOUT_S = 10
RSS_MIB = 1024
ALLOCATION_MIB = 256
LARGEST = {"codec": 16384, "delta": 16384, "zstd_block": 4096}


def command(arguments, corpus, crashes):
    return [
        arguments.program,
        f"--target={arguments.target}",
        f"-max_total_time={arguments.seconds}",
        f"-max_len={LARGEST.get(arguments.target, 4096)}",
        f"-timeout={TIMEOUT_S}",
        f"-rss_limit_mb={RSS_MIB}",
        f"-malloc_limit_mb={ALLOCATION_MIB}",
        f"-artifact_prefix={crashes}/{arguments.target}-",
        "-print_final_stats=1",
        "-reduce_inputs=1",
        str(corpus),
        str(pathlib.Path(arguments.seeds) / arguments.target),
    ]


def summary(output):
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    rate = re.findall(r"stat::average_exec_per_sec:\s*(\d+)", output)
    coverage = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output)
    if not (executions and rate and coverage):
        return None
    edges, features, inputs = coverage[-1]
    return (f"{executions[-1]} executions, {rate[-1]} a second; {edges} edges, {features} features, "
            f"{inputs} inputs worth keeping")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seeds", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("target")
    arguments = parser.parse_args()
    work = pathlib.Path(arguments.work)
    corpus, crashes = work / arguments.target, work / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command(arguments, corpus, crashes), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    found = summary(done.stdout)
    if done.returncode == 0 and found:
        print(f"{arguments.target}: {found}")
        return 0
    print(done.stdout[-12000:])
    for crash in sorted(crashes.glob(f"{arguments.target}-*")):
        print(f"{crash}: {crash.read_bytes()[:256].hex()}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
