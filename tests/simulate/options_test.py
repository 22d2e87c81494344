"""atoll-simulate rejects numbers that would simulate nothing, and its properties hold with few workers too.

Usage: options_test.py SIMULATE
"""
import subprocess
import sys

USAGE = 2
WRONG = [("--jobs", "0"), ("--jobs", "-1"), ("--seeds", "0"), ("--seeds", "-1"), ("--seed", "-1"), ("--hours", "0"),
         ("--hours", "-1"), ("--hours", "nan"), ("--hours", "inf"), ("--workers", "0"), ("--workers", "-1"),
         ("--workers", "65"), ("--workers", "1.5"), ("--mode", "some")]
SEEDS = 60  # several of them failed with each of these numbers of workers


def simulate(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def main():
    program, complaints = sys.argv[1], []
    for option, value in WRONG:
        code, output = simulate(program, f"{option}={value}")
        if code != USAGE or option not in output or "held" in output:
            complaints.append(f"{option}={value}: exit code {code}: {output}")
    # One range: --seed is its first number, --seeds its length.
    code, output = simulate(program, "--seed", "7", "--seeds", "3", "--hours", "0.01")
    ran = [line.split()[1] for line in output.splitlines() if " versions of " in line]
    if code != 0 or ran != ["7", "8", "9"] or "3 seeds in" not in output:
        complaints.append(f"--seed 7 --seeds 3: exit code {code}: {output}")
    if "--seed + 1" not in simulate(program, "--help")[1]:
        complaints.append("--help does not say which seeds --seeds runs")
    for workers in ("1", "2", "3"):
        code, output = simulate(program, "--workers", workers, "--seeds", str(SEEDS), "--jobs", "2", "--quiet")
        if code != 0 or f"{SEEDS} seeds" not in output or "every property held" not in output:
            complaints.append(f"{workers} workers: exit code {code}: {output}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
