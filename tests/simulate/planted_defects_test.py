"""Every planted defect is found by a simulation, and without a defect every property holds.

Usage: planted_defects_test.py SIMULATE_DEFECTS
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

MOST_SEEDS = 60
HEADER = pathlib.Path(__file__).resolve().parents[2] / "common/planted_defect.h"


def names():
    block = HEADER.read_text().split("kPlantedDefectNames = {")[1].split("}")[0]
    return re.findall(r'"([a-z-]+)"', block)


def simulate(program, defect, seeds):
    began = time.monotonic()
    done = subprocess.run([program, "--defect", defect, "--seeds", str(seeds), "--quiet", "--until-failure"],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - began


def main():
    program = sys.argv[1]
    defects = names()
    assert defects[0] == "none" and len(defects) > 10, defects
    failed = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {defect: pool.submit(simulate, program, defect, 10 if defect == "none" else MOST_SEEDS)
                for defect in defects}
        for defect, run in runs.items():
            code, output, seconds = run.result()
            what = output.strip().splitlines() or [""]
            found = next((line for line in what if re.match(r"seed \d+: ", line)), what[-1])
            print(f"{defect:24} {seconds:6.1f} s  {'found' if code else 'held'}: {found[:200]}", flush=True)
            # A crash is no finding: the checks have to see the defect.
            if (code != 0) != (defect != "none") or (code and "FAILED" not in output):
                failed.append(defect)
    print(f"{len(defects) - 1 - len([f for f in failed if f != 'none'])} of {len(defects) - 1} planted defects found")
    if failed:
        sys.exit(f"not as expected: {', '.join(failed)}")


if __name__ == "__main__":
    main()
