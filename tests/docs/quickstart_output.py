#!/usr/bin/env python3
"""Runs a command that runs scripts/quickstart.sh, shows its output, and checks what the quickstart promises there.

Usage: quickstart_output.py COMMAND [ARGUMENT ...]

The output must have a section "Result" with
  - the time to the first training loss: "first training loss LOSS, TIME after the start (packages TIME, ..."
  - at least 100 times fewer bytes than data-parallel training.

Exit codes: 0 passed, 1 a promise is not kept, 2 wrong usage, else that of the command.
"""
import re
import signal
import subprocess
import sys
import threading

LEAST_RATIO = 100
RESULT = re.compile(r"^(?:\x1b\[[0-9;]*m)*==> Result\b", re.M)
TIME = r"(?:\d+ (?:min|h|s) ?)+"
FIRST_LOSS = re.compile(rf"^ +first training loss \d+\.\d+, {TIME} after the start "
                        rf"\(packages {TIME}, build {TIME}, text {TIME}, training {TIME}\)$", re.M)
RATIO = re.compile(r"^ +moved .*: ([\d.]+)x fewer bytes than data-parallel", re.M)


def complaints(output):
    """The promises that the output of the quickstart does not keep."""
    parts = RESULT.split(output)
    if len(parts) < 2:
        yield "there is no section 'Result'"
        return
    result = parts[-1]
    if not FIRST_LOSS.search(result):
        yield "the result has no line 'first training loss LOSS, TIME after the start (packages TIME, ...)'"
    ratio = RATIO.search(result)
    if not ratio:
        yield "the result does not compare the bytes with data-parallel training"
    elif float(ratio[1]) < LEAST_RATIO:
        yield f"{ratio[1]}x fewer bytes than data-parallel training; at least {LEAST_RATIO}x are promised"


def run(command):
    """(exit code, output) of a command whose output is shown as it comes."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda number, frame: process.send_signal(number))
    kept = []

    def copy():
        while piece := process.stdout.read1():
            kept.append(piece)
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

    reader = threading.Thread(target=copy, daemon=True)
    reader.start()
    code = process.wait()
    reader.join(10)  # a process that the command left behind may keep the pipe open
    return code, b"".join(kept).decode(errors="replace")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    code, output = run(sys.argv[1:])
    if code != 0:
        return code if code > 0 else 128 - code
    found = list(complaints(output))
    for complaint in found:
        print(f"quickstart output: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
