#!/usr/bin/env python3
"""Workers whose coordinator can never be reached end with the cause; the others wait.

Real programs: a coordinator in plain text, two with TLS, of which one asks for certificates, and workers
that are configured wrongly, each in another way. It must show: after a minute of nothing but failures that look
permanent a worker ends with exit code 3 and a sentence that names the cause; with --wait-forever it goes on; a worker
whose coordinator is merely not there yet, or was there and is away, goes on. No line of gRPC's own is in any program's
output: a log in JSON is JSON, line for line.

Usage: permanent_errors.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from hand_run import HandRun
from real_run import run_as_test, tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = """run: {name: unreachable, workers: 2, rounds: 100, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 0.005, batch: 2}
round: {start_workers: 2}
checkpoint: {shards: 1}
"""
GIVES_UP_AFTER_S = 60
SLACK_S = 45  # workers start, and look, on a busy machine
EXIT_UNAVAILABLE = 3
# A label of more than 63 characters: every resolver knows without a name server that there is no such name.
UNKNOWN_HOST = "no-such-coordinator-" + "x" * 64 + ".invalid"
# As gRPC begins its own lines: E1122 09:00:00.000000000 or E0000 00:00:00.000000.
RAW_GRPC = re.compile(r"^[DIWE]\d{4} \d\d:\d\d:\d\d", re.MULTILINE)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificates(folder, *who):
    subprocess.run([ROOT / "scripts/dev-certs.sh", folder, *who], check=True, stdout=subprocess.DEVNULL, timeout=60)
    return folder


def wrong_workers(plain, secured, demanding, ours, other_ca):
    """Name: address, flags, and what the sentence must name; None: it must not end."""
    tls = ["--tls-ca", ours / "ca.pem"]
    return {
        "unknown-host": (f"{UNKNOWN_HOST}:7600", [], f"the host name '{UNKNOWN_HOST}' is unknown"),
        "wrong-ca": (secured.data, ["--tls-ca", other_ca / "ca.pem"], "--tls-ca does not trust"),
        "plain-to-tls": (secured.data, [], "this port needs TLS"),
        "tls-to-plain": (plain.data, tls, "does not use TLS"),
        "no-certificate": (demanding.data, tls, "because it requires a certificate"),
        "certificate-of-another-ca": (
            demanding.data,
            [*tls, "--tls-cert", other_ca / "worker-w0.pem", "--tls-key", other_ca / "worker-w0.key"],
            f"rejects our certificate (--tls-cert {other_ca / 'worker-w0.pem'})"),
        "admin-port": (plain.admin, [], "admin port"),
        "web-server": (plain.metrics_address, [], "does not speak the protocol"),
        "not-there-yet": (f"127.0.0.1:{free_port()}", [], None),
        "told-to-wait": (secured.data, ["--tls-ca", other_ca / "ca.pem", "--wait-forever"], None),
    }


def check_worker(run, name, why, begin, complaints):
    process = run.workers_by_name[name]
    if why is None:
        if process.poll() is not None:
            complaints.append(f"{name} ended with {process.returncode}: {run.worker_log_end(name)}")
        return
    try:
        code = process.wait(max(0.1, begin + GIVES_UP_AFTER_S + SLACK_S - time.monotonic()))
    except subprocess.TimeoutExpired:
        complaints.append(f"{name} goes on trying: {run.worker_log_end(name)}")
        return
    last = json.loads(run.worker_log_end(name).strip().splitlines()[-1])
    if code != EXIT_UNAVAILABLE or why not in last["message"]:
        complaints.append(f"{name} ended with {code}, not saying '{why}': {last}")


def check_logs(folder, complaints):
    for log in sorted(folder.glob("*/*.log")):
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                json.loads(line)
            else:
                complaints.append(f"{log.name} has a line that is not JSON: {line[:200]}")
                break


def check_atollctl(run, complaints):
    """In plain text to a port with TLS."""
    done = subprocess.run([run.programs / "atollctl", "--timeout", "3", "--admin", run.admin, "status"], capture_output=True,
                          text=True, timeout=60, check=False)
    if done.returncode == 0 or RAW_GRPC.search(done.stderr + done.stdout):
        complaints.append(f"atollctl ended with {done.returncode} and said: {done.stderr[-600:]}")


def measure(folder, programs):
    complaints = []
    tokens = tokenize(programs, ROOT / "README.md", folder / "tokens")
    ours = certificates(folder / "certs", "--coordinator", "--worker", "w0", "--admin", "ann")
    other_ca = certificates(folder / "other", "--worker", "w0")
    runs = plain, secured, demanding = [HandRun(folder / name, programs, CONFIG) for name in ("plain", "secured", "demanding")]
    try:
        plain.start_coordinator("--metrics-listen", "127.0.0.1:0")
        tls = ["--tls-cert", ours / "coordinator.pem", "--tls-key", ours / "coordinator.key", "--tls-ca", ours / "ca.pem"]
        secured.start_coordinator(*tls, "--tls-client-auth", "optional")
        demanding.start_coordinator(*tls)
        plain.start_worker("reached", tokens)
        plain.wait_for(lambda: "reached" in (plain.workers() or {}), 60, "the worker to join")
        begin = time.monotonic()
        cases = wrong_workers(plain, secured, demanding, ours, other_ca)
        address = plain.data
        for name, (plain.data, flags, _) in cases.items():
            plain.start_worker(name, tokens, *flags)
        plain.data = address
        check_atollctl(secured, complaints)
        for name, (_, _, why) in cases.items():
            if why is not None:
                check_worker(plain, name, why, begin, complaints)
        # Its address answers nobody from now on.
        plain.stop_coordinator(signal.SIGKILL)
        time.sleep(3)
        for name in ("reached", *(name for name, (_, _, why) in cases.items() if why is None)):
            check_worker(plain, name, None, begin, complaints)
        check_logs(folder, complaints)
        print(f"{sum(why is not None for _, _, why in cases.values())} ended with their cause, the others wait")
    finally:
        for run in runs:
            run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-unreachable-", __doc__, measure))
