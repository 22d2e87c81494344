#!/usr/bin/env python3
"""Runs test modules of this folder with unittest, in this Python.

Usage: run_tests.py [--bin DIR] [--library FILE] [--need PACKAGE]... MODULE...

  --bin DIR       the programs; without them the modules must not need any
  --library FILE  libatoll_client.so
  --need PACKAGE  a package without which the tests are skipped
  --interop       run them with the Python of scripts/interop.sh instead, which has a current PyTorch
  --harness       run them with that of `scripts/interop.sh --harness`, which has lm-evaluation-harness

Exit codes: 0 passed, 1 failed, 77 a program or a package is missing.
"""
import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--need", action="append", default=[])
    parser.add_argument("--interop", action="store_true")
    parser.add_argument("--harness", action="store_true")
    parser.add_argument("modules", nargs="+")
    arguments = parser.parse_args()
    if arguments.interop:
        return run_elsewhere("interop", [], "ATOLL_INTEROP_PYTHON")
    if arguments.harness:
        return run_elsewhere("harness", ["--harness"], "ATOLL_HARNESS_PYTHON")
    for package in arguments.need:
        if importlib.util.find_spec(package) is None:
            print(f"skipped: {sys.executable} has no package {package}")
            return 77
    if arguments.bin is not None:
        needed = [arguments.bin / "atoll-coordinator", arguments.bin / "atollctl", arguments.bin / "atoll-engine", arguments.library]
        for path in needed:
            if not path.exists():
                print(f"skipped: {path} is not built")
                return 77
        os.environ["ATOLL_TEST_BIN"] = str(arguments.bin.resolve())
        os.environ["ATOLL_LIBRARY"] = str(arguments.library.resolve())
        os.environ["ATOLL_ENGINE"] = str((arguments.bin / "atoll-engine").resolve())
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    import fixture  # noqa: F401  its import puts the package in the path
    suite = unittest.defaultTestLoader.loadTestsFromNames(arguments.modules)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() else 1


def run_elsewhere(group, which, variable):
    script = ROOT / "scripts/interop.sh"
    told = subprocess.run([script, *which, "--python"], capture_output=True, text=True, check=True).stdout if script.exists() else ""
    python = told.strip() or os.environ.get(variable, "")
    if not os.access(python, os.X_OK):
        print(f"skipped: there is no {python or variable}; `scripts/setup.sh --groups {group}` makes it")
        return 77
    os.execv(python, [python, "-B", __file__, *(argument for argument in sys.argv[1:] if argument != "--" + group)])


if __name__ == "__main__":
    sys.exit(main())
