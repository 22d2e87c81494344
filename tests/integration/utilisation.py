#!/usr/bin/env python3
"""Where the time of real workers goes, and whether anybody notices when it is wasted.

An overlapped worker trains on whatever its link does. Once over a link on which an exchange takes a part of a round, and once over one
on which it lasts for several rounds, it must show: the uses of the training thread's time sum to the wall time within 1 %; those of
the exchange threads to theirs; on the thin link utilisation falls below a half, in the worker's metrics, the coordinator's and
`atollctl metrics`; and the alert LowUtilisation fires on what the coordinator exports of it, by the shipped rules. A blocking worker
on the thin link waits instead. What is fast depends on the length of a round: over the fast link, rounds that are shorter than an exchange
have the overdue steps that follow from both lengths.

Usage: utilisation.py --bin DIR --rules FILE [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

from real_run import judge, tokenize_foxes
from shaped_run import ShapedRun, between, by_use, scrape

CONFIG = """run: {{name: {mode}, workers: 1, rounds: 100000, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 128, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: {steps}, learning_rate: 0.001, batch: 32}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
round: {{deadline_s: 600, start_workers: 1}}
evaluation: {{every: 4, batches: 2}}
codec: {{push: fp32, pull: fp32, pull_delta: none}}
checkpoint: {{shards: 1}}
sync: {{mode: {mode}{more}}}
"""
OVERLAP = ", fragments: 1, delay_steps: 2"
# A step takes some milliseconds; an exchange on the fast link some hundred, most of it in the coordinator and on its disk.
STEPS, FEW_STEPS, MEASURED_S = 128, 4, 8
FAST, THIN = 400, 0.5  # Mbit/s; 0.9 MB each way and round
# name: (mode, Mbit/s, inner steps of a round)
CASES = {"fast": ("overlapped", FAST, STEPS), "short": ("overlapped", FAST, FEW_STEPS), "thin": ("overlapped", THIN, STEPS),
         "waiting": ("blocking", THIN, STEPS)}


def measure_one(folder, programs, tokens, mode, megabits, round_steps):
    """What a worker did between two moments: {training, exchange, member: {use: seconds}, wall, steps, rounds, reported}."""
    with ShapedRun(folder, programs, CONFIG.format(mode=mode, steps=round_steps, more=OVERLAP if mode == "overlapped" else "")) as run:
        run.start(tokens, ["w0"], FAST, 5)
        address = run.endpoint("w0")
        steps = lambda: scrape(address)[("atoll_worker_inner_steps_total", ())]
        run.wait_for(lambda: steps() >= 2 * round_steps, 90, "the worker to train")
        # Between two exchanges: what is measured of the blocking worker lies in one push. A pull is counted when it ends.
        run.wait_for(lambda: mode == "overlapped" or 0 < steps() % round_steps < 3 * round_steps // 4, 90, "inner steps")
        run.link.shape(megabits)
        # An exchange has to be under way over this link, and another one due: then it is held back.
        held = steps() + 2 * round_steps
        run.wait_for(lambda: mode == "blocking" or steps() >= held, 90, "the worker to train on")
        time.sleep(1)

        def look():
            # Just after an inner step, which is counted when it ends.
            taken, end = steps(), time.monotonic() + 3
            while mode == "overlapped" and steps() == taken and time.monotonic() < end:
                time.sleep(0.01)
            at, mine = time.monotonic(), scrape(address)
            theirs = scrape(run.metrics_address)
            return {"at": at, "training": by_use(mine, "atoll_worker_training_time_seconds_total"),
                    "exchange": by_use(mine, "atoll_worker_exchange_time_seconds_total"),
                    "steps": mine[("atoll_worker_inner_steps_total", ())], "rounds": mine[("atoll_worker_rounds_total", ())],
                    "member": by_use(theirs, "atoll_member_time_seconds_total", worker="w0")}

        before = look()
        time.sleep(MEASURED_S)
        after = look()
        spent = {kind: between(before[kind], after[kind]) for kind in ("training", "exchange", "member")}
        spent |= {key: after[key] - before[key] for key in ("steps", "rounds")}
        spent["wall"] = after["at"] - before["at"]
        spent["reported"] = json.loads(run.ctl("metrics", "--json"))["compute_utilisation"]
        return spent


def utilisation(seconds):
    return seconds["compute"] / (sum(seconds.values()) - seconds["pause"])


def text(seconds):
    return ", ".join(f"{use} {value:.2f}" for use, value in sorted(seconds.items(), key=lambda item: -item[1]) if value > 0.005)


def fires(folder, rules, member, wall):
    """Complaints of promtool when a member's time goes on like this for 100 minutes: LowUtilisation is to fire."""
    series = "\n".join(f"""      - series: 'atoll_member_time_seconds_total{{instance="c:7602", worker="w0", use="{use}"}}'
        values: '0+{60 * value / wall:.3f}x100'""" for use, value in sorted(member.items()))
    expected = f"""      - eval_time: 90m
        alertname: LowUtilisation
        exp_alerts:
          - exp_labels: {{instance: "c:7602", severity: "info"}}
            exp_annotations: {{}}
"""
    test = folder / "rules_test.yaml"
    test.write_text(f"rule_files: ['{rules}']\ntests:\n  - interval: 1m\n    input_series:\n{series}\n    alert_rule_test:\n{expected}")
    # The summary's percentage is the run's own: only that the alert fires, and with what labels, is asked here.
    done = subprocess.run(["promtool", "test", "rules", test], capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    got = said.split("got:", 1)[-1]
    return [] if 'alertname="LowUtilisation"' in got or done.returncode == 0 else [f"LowUtilisation does not fire: {said[-800:]}"]


def complaints_of(name, spent):
    found = []
    total = sum(spent["training"].values())
    # What is under way (one inner step at most) is counted when it ends.
    if abs(total - spent["wall"]) > 0.01 * spent["wall"]:
        found.append(f"{name}: the training thread's uses are {total:.3f} s of {spent['wall']:.3f} s: {text(spent['training'])}")
    if spent["training"]["other"] > 0.1 * spent["wall"]:
        found.append(f"{name}: too much in no bucket: {text(spent['training'])}")
    return found


def complaints_of_overdue(name, spent, round_steps):
    """A push waits for the exchange before it. So the steps of a contribution are those of a round, or as many as an exchange takes,
    and those beyond a round's are overdue."""
    training = spent["training"]
    in_steps = training["compute"] + training["overdue"] + training["data"]
    exchange = (sum(spent["exchange"].values()) - spent["exchange"]["idle"]) / spent["rounds"]
    a_round = round_steps * in_steps / spent["steps"]
    expected = max(0.0, 1 - a_round / exchange)
    share = training["overdue"] / (training["compute"] + training["overdue"])
    print(f"    {name}: {spent['rounds']:.0f} exchanges of {1000 * exchange:.0f} ms, a round's steps take {1000 * a_round:.0f} ms: "
          f"{100 * expected:.1f} % of the steps are overdue, and {100 * share:.1f} % are booked so", flush=True)
    return [] if abs(share - expected) < 0.1 else [f"{name}: {share:.3f} of the steps are booked as overdue, not {expected:.3f}"]


def measure(folder, programs, rules):
    tokens = tokenize_foxes(programs, folder)
    complaints = []
    results = {}
    for name, (mode, megabits, round_steps) in CASES.items():
        spent = measure_one(folder / name, programs, tokens, mode, megabits, round_steps)
        results[name] = spent
        print(f"{name}: {mode} at {megabits} Mbit/s: utilisation {100 * utilisation(spent['training']):.1f} %, atollctl says "
              f"{100 * spent['reported']:.1f} %; training {text(spent['training'])}; exchange threads {text(spent['exchange'])}",
              flush=True)
        complaints += complaints_of(name, spent)
        if name in ("fast", "short"):
            complaints += complaints_of_overdue(name, spent, round_steps)
    fast, thin, waiting = (results[name] for name in ("fast", "thin", "waiting"))
    lanes = sum(fast["exchange"].values())
    # A pull under way is counted when it ends; on the thin link one takes longer than this looks.
    if not 0.8 * fast["wall"] < lanes < 1.2 * fast["wall"]:
        complaints.append(f"one exchange thread spent {lanes:.2f} s of {fast['wall']:.2f} s: {text(fast['exchange'])}")
    if utilisation(fast["training"]) < 0.6:
        complaints.append(f"on the fast link: {text(fast['training'])}")
    if utilisation(thin["training"]) > 0.5 or thin["reported"] > 0.5 or thin["training"]["overdue"] < 0.3 * thin["wall"]:
        complaints.append(f"on the thin link nobody sees that exchanges are passed over: {text(thin['training'])}")
    if results["short"]["training"]["overdue"] < 0.3 * results["short"]["wall"]:
        complaints.append(f"rounds shorter than an exchange: {text(results['short']['training'])}")
    if utilisation(waiting["training"]) > 0.5 or waiting["training"]["overdue"] > 0:
        complaints.append(f"the blocking worker does not wait: {text(waiting['training'])}")
    if shutil.which("promtool"):
        complaints += fires(folder, rules, thin["member"], thin["wall"])
        if not fires(folder, rules, fast["member"], fast["wall"]):
            complaints.append("LowUtilisation fires for the worker on the fast link too")
    else:
        complaints.append("promtool is not installed: scripts/setup.sh")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--rules", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run")
    arguments = parser.parse_args()
    return judge("atoll-utilisation-", arguments, lambda folder, programs: measure(folder, programs, arguments.rules.resolve()))


if __name__ == "__main__":
    sys.exit(main())
