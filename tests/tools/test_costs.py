"""Measures what each test costs, alone: seconds, and seconds of processor time. Writes tests/test_costs.txt.

CMake reads that file (cmake/AtollTargets.cmake): ctest starts long tests first, and runs more tests beside those that wait.

    /usr/bin/python3 -B tests/tools/test_costs.py --build build/release           # tests that are not in the file yet
    /usr/bin/python3 -B tests/tools/test_costs.py --build build/release --all     # every test of CI; an hour on an idle machine
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "test_costs.txt"
HEADER = """# What each test of CI costs, alone on two idle processors: name, seconds, seconds of processor time. Tests that are not here
# take less than three seconds. Renew with tests/tools/test_costs.py.
"""
SHORT_S = 3.0


def read_table(path: Path) -> dict[str, tuple[float, float]]:
    costs = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                name, seconds, cpu = line.split()
                costs[name] = (float(seconds), float(cpu))
    return costs


def write_table(path: Path, costs: dict[str, tuple[float, float]]) -> None:
    lines = [f"{name} {seconds:.0f} {cpu:.0f}" for name, (seconds, cpu) in sorted(costs.items()) if seconds >= SHORT_S]
    path.write_text(HEADER + "\n".join(lines) + "\n")


def tests_of(build: Path) -> list[str]:
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-LE", "^long$"], check=True, capture_output=True)
    return [test["name"] for test in json.loads(shown.stdout)["tests"]]


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(build: Path, name: str) -> tuple[float, float, bool]:
    began, cpu = time.monotonic(), children_cpu_s()
    command = ["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$", "--output-on-failure"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.stderr.write(ran.stdout[-2000:])
    return time.monotonic() - began, children_cpu_s() - cpu, ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="a build folder with every test")
    parser.add_argument("--all", action="store_true", help="measure also what the file already has")
    parser.add_argument("--only", default="", metavar="REGEX", help="only tests whose names match")
    options = parser.parse_args()

    costs = read_table(TABLE)
    names = tests_of(options.build)
    costs = {name: cost for name, cost in costs.items() if name in names}
    chosen = [name for name in names if re.search(options.only, name) and (options.all or options.only or name not in costs)]
    failed = []
    for index, name in enumerate(chosen):
        seconds, cpu, passed = measure(options.build, name)
        print(f"{index + 1}/{len(chosen)} {name}: {seconds:.1f} s, {cpu:.1f} s of processor time{'' if passed else ', FAILED'}", flush=True)
        if passed:
            costs[name] = (seconds, cpu)
            write_table(TABLE, costs)
        else:
            failed.append(name)
    if failed:
        print(f"failed, and not recorded: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
