#!/usr/bin/env python3
"""Opens the recorded runs in data/ with today's programs, compares what they say with the recording, and continues the runs.

In each recorded run the coordinator and the workers were killed in the middle of a round (record_runs.py). The newest version has no
stored tensors, the open round has accepted contributions, one of these was never acknowledged, and another contribution is only in its
worker's state directory. For each run the test checks three things:

  opening     The records are the recorded ones. The coordinator opens the directory. Status, members, rounds, configurations,
              checkpoints, events, signatures and the exported parameters equal the recording. `atollctl verify` recomputes every
              retained version that still has its contributions, and `verify --confirmations` accepts the signatures.
  continuing  The workers return with their state directories. Each kept contribution counts once, with the recorded bytes. The next
              version has the recorded hashes where the recorded contributions decide it. Three more versions are made, and verified.
              Every record of before is unchanged.
  restoring   (blocking) The recorded checkpoint becomes the head again, with the hashes of its version, and two more versions follow.

With --self-test the test damages copies of the runs and fails unless it finds each damage.

Usage: recorded_runs_test.py --bin DIR [--only NAME] [--self-test] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 a program or RocksDB's library is not there.
"""
import argparse
import collections
import json
import pathlib
import sys
import time

import records
from recorded_run import EXPECTATIONS, PATIENCE_S, RecordedRun, contributors_of, kept_only_by_workers, observe, unpack
from real_run import judge

DATA = pathlib.Path(__file__).resolve().parent / "data"
CHECKPOINT = "recorded"
MORE_VERSIONS = 3  # recorded contributions may decide the first one


def differences(expected, seen, at):
    """Each recorded value that is missing or different. Additional fields are no difference: a later release may add them."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        return [line for name, value in expected.items() for line in
                (differences(value, seen[name], f"{at}.{name}") if name in seen else [f"{at}.{name} is missing"])]
    if isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        return [line for i, value in enumerate(expected) for line in differences(value, seen[i], f"{at}[{i}]")]
    return [] if expected == seen else [f"{at}: expected {expected!r}, found {seen!r}"]


def check_records(expected, folder):
    """Compares the records before a program of today opens the directory."""
    return differences(expected["records"], records.of_data_directory(folder / "coordinator"), "records")


def check_opened(expected, run):
    run.start_coordinator()
    seen = observe(run, expected)
    complaints = differences(expected["seen"], seen, "seen")
    if sum(verdict == "EQUAL" for _, _, verdict in seen["verdicts"]) < len(seen["fragments"]):
        complaints.append(f"verify recomputed too little: {seen['verdicts']}")
    rounds = {(r["fragment"], r["version"]): r for r in expected["records"]["round"] + expected["next"]}
    for fragment, status in enumerate(seen["fragments"]):
        if status["published"] != rounds[fragment, status["version"]]["published"]:
            complaints.append(f"fragment {fragment} publishes {status['published']}, its record has another hash")
    return complaints


def nobody_ended(run):
    for name, process in run.workers_by_name.items():
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with {process.returncode}: {run.worker_log_end(name)}")


def check_verdicts(run):
    wrong = [line for line in run.verdicts() if line[2] not in ("EQUAL", "NOT_KEPT")]
    return [f"verify: {wrong}"] if wrong else []


def go_on(run, versions):
    run.await_versions({fragment: version + versions for fragment, version in run.versions().items()}, lambda: nobody_ended(run))


def restore(run, complaints):
    answer = json.loads(run.must("checkpoint", "restore", CHECKPOINT, "--yes", "--json"))
    go_on(run, 2)
    complaints += check_verdicts(run)
    return [int(version) for version in answer["versions"]]


def finish(run):
    """Stops the run as an operator does. Every program must exit with 0."""
    run.must("run", "stop", "--yes")
    complaints = [f"{name} ended with {code}: {run.worker_log_end(name)}" for name, process in run.workers_by_name.items()
                  if (code := process.wait(PATIENCE_S)) != 0]
    code = run.stop_coordinator()
    return complaints + ([f"the coordinator ended with {code}: {run.log_end()}"] if code != 0 else [])


def check_counted(expected, known):
    """No contribution counts twice. Accepted and kept contributions count, with the recorded payloads."""
    complaints = []
    counted = collections.Counter()
    payloads = {}
    for record in known["round"]:
        for c in record["contributions"]:
            key = (c["epoch"], c["fragment"], c["base"], c["worker"])
            counted[key] += 1
            payloads[key] = c["payload_crc32c"]
    complaints += [f"{key} counts {times} times" for key, times in counted.items() if times > 1]
    accepted = [(c, c["worker"]) for c in expected["records"]["contribution"]]
    kept = [(push, worker) for worker, pushes in kept_only_by_workers(expected).items() for push in pushes]
    for push, worker in accepted + kept:
        key = (push["epoch"], push["fragment"], push["base"], worker)
        if payloads.get(key) != push["payload_crc32c"]:
            complaints.append(f"{key} was recorded with crc32c {push['payload_crc32c']}, and counts with {payloads.get(key)}")
    return complaints


def check_after(expected, folder, restored):
    known = records.of_data_directory(folder / "coordinator")
    complaints = check_counted(expected, known)
    rounds = {(r["fragment"], r["version"]): r for r in known["round"]}
    for version in expected["next"]:
        made = rounds[version["fragment"], version["version"]]
        made["contributors"] = contributors_of(made)
        settled = expected["settled"][str(version["fragment"])] == version["version"]
        # When a worker rejoins, its open round may close before the worker has sent its kept contribution.
        if settled or made["contributors"] == version["contributors"]:
            complaints += differences(version, made, "next")
        else:
            print(f"version {version['version']} of fragment {version['fragment']} has other contributions than recorded: {made['contributors']}")
    of_checkpoint = expected["seen"]["checkpoints"][0]["versions"]
    for fragment, version in enumerate(restored):
        before, after = rounds[fragment, int(of_checkpoint[fragment])], rounds[fragment, version]
        complaints += [f"restored: {name} is {after[name]}, and was {before[name]}" for name in ("parameters", "state", "published")
                       if after[name] != before[name]]
    kept = expected["records"]["sha256"]
    if restored:  # a restore gives the run a new epoch
        kept = {key: digest for key, digest in kept.items() if bytes.fromhex(key) != b"identity"}
    return complaints + differences(kept, known["sha256"], "sha256")


def check(name, folder, programs, go_further=True, damage=lambda folder: None):
    """The complaints about one recorded run."""
    unpack(DATA / f"{name}.tar.xz", folder)
    damage(folder)
    expected = json.loads((folder / EXPECTATIONS).read_text())
    run, restored = RecordedRun(folder, programs), []
    try:
        complaints = check_records(expected, folder) + check_opened(expected, run)
        if complaints or not go_further:
            return complaints
        run.start_recorded_workers(expected)
        go_on(run, MORE_VERSIONS)
        complaints += check_verdicts(run)
        if name.startswith("blocking"):
            restored = restore(run, complaints)
        complaints += finish(run)
        return complaints + check_after(expected, folder, restored)
    except (RuntimeError, ValueError) as problem:
        return [str(problem)]
    finally:
        run.kill_all()


def rewrite(path, change):
    """Replaces the file, because a checkpoint may share the old one by a hard link."""
    data = bytearray(path.read_bytes())
    change(data)
    path.unlink()
    path.write_bytes(data)


def flip(data, at):
    data[at] ^= 1


def flip_tensor(folder, version):
    """`version`: a place in the list of the stored versions. The first one is dropped when the head is stored."""
    paths = sorted(folder.glob("coordinator/shards/00/*.sst"))
    rewrite(paths[version], lambda data: flip(data, len(data) // 3))


def flip_accepted(folder):
    rewrite(sorted(folder.glob("coordinator/contributions/*"))[-1], lambda data: flip(data, len(data) // 2))


def flip_kept(folder):
    """Damages each push file without a verdict."""
    for path in folder.glob("state-*/progress/push-*"):
        if path.read_bytes()[-2:] != b"\x01\xfe":
            rewrite(path, lambda data: flip(data, len(data) // 2))


def expect_other(folder, change):
    path = folder / EXPECTATIONS
    expected = json.loads(path.read_text())
    change(expected)
    path.write_text(json.dumps(expected))


def other_published(expected):
    expected["seen"]["fragments"][0]["published"] = "0" * 32


def other_state(expected):
    expected["records"]["round"][-1]["state"] = "0" * 32


def other_next(expected):
    for version in expected["next"]:
        version["parameters"] = "0" * 32


def other_event(expected):
    expected["seen"]["events"].append(expected["seen"]["events"][-1])


def expecting(change):
    return lambda folder: expect_other(folder, change)


# The damage, the run, how to damage it, whether the run must continue to show the damage, and words of the complaint.
DAMAGES = (
    ("a bit of older tensors", "blocking", lambda folder: flip_tensor(folder, -2), False, "verify"),
    ("a bit of the newest tensors", "blocking", lambda folder: flip_tensor(folder, -1), False, "the coordinator ended"),
    ("a bit of an accepted contribution", "blocking", flip_accepted, False, "the coordinator ended"),
    ("a hash in the status", "overlapped", expecting(other_published), False, "seen.fragments[0].published"),
    ("a hash in a record", "asynchronous", expecting(other_state), False, "records.round"),
    ("an event", "asynchronous", expecting(other_event), False, "seen.events"),
    ("a bit of the kept contributions", "blocking", flip_kept, True, "was recorded with crc32c"),
    ("the hash of the next version", "overlapped", expecting(other_next), True, "next.parameters"),
)


def self_test(folder, programs):
    complaints = []
    for number, (what, name, damage, go_further, words) in enumerate(DAMAGES):
        found = check(name, folder / str(number), programs, go_further, damage)
        if not any(words in line for line in found):
            complaints.append(f"{name}: {what} was changed, and the test says {found}")
        print(f"{name}, {what}: {(found or ['nothing'])[0][-200:]}", flush=True)
    return complaints


def measure(folder, programs, only):
    complaints = []
    for archive in sorted(DATA.glob("*.tar.xz")):
        name, began = archive.name.removesuffix(".tar.xz"), time.monotonic()
        if only in ("", name):
            complaints += [f"{name}: {line}" for line in check(name, folder / name, programs)]
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="the run with this name, and no other")
    parser.add_argument("--self-test", action="store_true", help="show that damage is found")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the runs")
    arguments = parser.parse_args()
    if records.library() is None:
        print("skipped: RocksDB's library is not installed (scripts/setup.sh installs librocksdb-dev)")
        return 77
    run = self_test if arguments.self_test else lambda folder, programs: measure(folder, programs, arguments.only)
    return judge("atoll-recorded-", arguments, run)


if __name__ == "__main__":
    sys.exit(main())
