#!/usr/bin/env python3
"""`atollctl compare` with runs of real programs.

Two short runs with different codecs. The first is exported as CSV and as JSON lines and ends; the second stays alive. Compared are the
live run and both files: the losses are those of the status, both files give the same numbers, and fewer bytes for each token are shown for the smaller codec.
The page of --html draws a line for each run in a browser without a network, if there is one. A coordinator that is away ends the
command with 3 and is named; with --skip-unreachable the others are shown.

Usage: compare_runs.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import csv
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys

from hand_run import HandRun
from real_run import run_as_test, tokenize_foxes

ROUNDS = 5
CONFIG = """run: {{name: {name}, workers: 1, rounds: {rounds}, seed: 5}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 4, learning_rate: 0.01, warmup_steps: 4, batch: 4}}
round: {{deadline_s: 60}}
codec: {{push: {codec}, pull_delta: none}}
evaluation: {{every: 1, batches: 4}}
checkpoint: {{shards: 1}}
"""
AWAY = "127.0.0.1:9"


def trained(folder, programs, tokens, name, codec):
    run = HandRun(folder / name, programs, CONFIG.format(name=name, rounds=ROUNDS, codec=codec))
    run.start_coordinator()
    run.start_worker("w0", tokens)
    run.wait_for(lambda: len((run.status(50) or {}).get("evaluations", [])) == ROUNDS + 1, 120, "the last evaluation")
    return run


def compare(programs, *arguments, code=0):
    done = subprocess.run([programs / "atollctl", "--timeout", "3", "compare", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)
    if done.returncode != code:
        raise RuntimeError(f"compare {arguments} ended with {done.returncode}: {done.stderr}")
    return done


def check_page(page, names, complaints):
    text = page.read_text(encoding="utf-8")
    if re.search(r"(src|href)=[\"']?(https?:)?//", text):
        complaints.append("the page names another host")
    browser = shutil.which("chromium")
    if not browser:
        return
    dom = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,800",
                          "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
                         capture_output=True, text=True, timeout=120, check=False).stdout
    lines = len(re.findall(r'<path class="line', dom))
    rows = re.findall(r'<td class="name">([^<]*)</td>', dom)
    if lines != len(names) or rows != names:
        complaints.append(f"the page has {lines} lines and the rows {rows}, not those of {names}: {dom[-2000:]}")


def measure(folder, programs):
    folder = pathlib.Path(folder)
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    first = trained(folder, programs, tokens, "wide", "fp32")
    try:
        losses = [one["loss"] for one in first.status(50)["evaluations"]]
        files = {kind: folder / f"export.{kind}" for kind in ("csv", "jsonl")}
        for kind, path in files.items():
            if first.ctl("metrics", "export", "--format", kind, "--out", str(path)) is None:
                raise RuntimeError(first.complaint)
    finally:
        first.kill_all()
    live = trained(folder, programs, tokens, "narrow", "e3m0")
    try:
        page = folder / "compare.html"
        runs = [live.admin, f"as csv={files['csv']}", f"as lines={files['jsonl']}"]
        shown = json.loads(compare(programs, *runs, "--json", "--html", page).stdout)
        names = [run["name"] for run in shown["runs"]]
        if names != ["narrow", "as csv", "as lines"]:
            complaints.append(f"the runs are called {names}")
        narrow, wide, same = shown["runs"]
        if [point["loss"] for point in wide["points"]] != losses:
            complaints.append(f"the file's losses are {wide['points']}, the status had {losses}")
        if [point["loss"] for point in narrow["points"]] != [one["loss"] for one in live.status(50)["evaluations"]]:
            complaints.append(f"the live run's losses are {narrow['points']}")
        if {**wide, "name": "", "source": "", "points": [], "last": 0, "best": 0, "tokens_per_second": 0} != {
                **same, "name": "", "source": "", "points": [], "last": 0, "best": 0, "tokens_per_second": 0}:
            complaints.append(f"CSV and JSON lines differ: {wide} {same}")
        ratio = wide["bytes_per_token"] / narrow["bytes_per_token"]
        if not 6 < ratio < 9:
            complaints.append(f"fp32 moved {ratio:.2f} times the bytes of e3m0")
        if [point["tokens"] for point in wide["points"]] != [256 * i for i in range(ROUNDS + 1)] or wide["points"][-1]["steps"] != 4 * ROUNDS:
            complaints.append(f"tokens and steps are {wide['points']}")
        check_page(page, names, complaints)
        table = list(csv.DictReader(io.StringIO(compare(programs, *runs, "--csv").stdout)))
        if len(table) != 3 * (ROUNDS + 1) or float(table[-1]["loss"]) != same["points"][-1]["loss"]:
            complaints.append(f"the CSV has {len(table)} lines, the last {table[-1]}")
        text = compare(programs, *runs, "--axis", "bytes", "--loss", "training").stdout
        if "training loss" not in text or "narrow" not in text or not re.search(r"bytes \d.* to \d", text):
            complaints.append(f"the terminal shows {text}")
        away = compare(programs, runs[1], f"gone={AWAY}", code=3)
        if "gone (127.0.0.1:9)" not in away.stderr or away.stdout:
            complaints.append(f"a coordinator that is away: {away}")
        skipped = compare(programs, runs[1], f"gone={AWAY}", "--skip-unreachable")
        if "skipped: gone (127.0.0.1:9)" not in skipped.stderr or "as csv" not in skipped.stdout:
            complaints.append(f"--skip-unreachable: {skipped}")
        compare(programs, AWAY, "--skip-unreachable", code=3)
        wrong = compare(programs, runs[1], "nothing.csv", code=6)
        if "'nothing.csv' is neither a file" not in wrong.stderr:
            complaints.append(f"a file that is not there: {wrong}")
        compare(programs, folder / "text", code=6)
    finally:
        live.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-compare-", __doc__, measure))
