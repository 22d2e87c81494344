#!/usr/bin/python3
"""Probes and scrapes of the real programs while strangers hold connections to the same ports.

A coordinator and a worker, which never reaches it, are asked for /healthz, /metrics and gRPC health while hundreds of idle
connections, half requests and slow readers, or Watch streams, are open from the same address. Each answer must come soon.

Usage: probes.py --bin DIR [--path /healthz]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 a program or python3-grpcio is not there.
"""
import argparse
import http.client
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

try:
    import grpc
except ImportError:
    print("probes: python3-grpcio is not installed: skipped")
    sys.exit(77)

from coordinator import Coordinator

SOON_S = 2
IDLE = HALF = 300
SLOW = 60
WATCHERS = 96
HEALTH = "/grpc.health.v1.Health/"
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"


class Checks:
    def __init__(self):
        self.complaints = 0

    def answered(self, what, ask):
        began = time.monotonic()
        try:
            problem = ask()
        except (OSError, http.client.HTTPException, grpc.RpcError) as error:
            problem = f"{type(error).__name__}: {error.code() if isinstance(error, grpc.RpcError) else error}"
        took = time.monotonic() - began
        good = problem is None and took < SOON_S
        self.complaints += not good
        print(f"{what:58} {took:6.3f} s{'' if good else f'    FAILED: {problem}'}", flush=True)


def get(address, path, expected):
    connection = http.client.HTTPConnection(*address, timeout=SOON_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
    finally:
        connection.close()
    return None if answer.status == 200 and expected in body else f"{answer.status}: {body[:100]}"


def check(address):
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        answer = channel.unary_unary(HEALTH + "Check")(b"", timeout=SOON_S)
    return None if answer == b"\x08\x01" else f"it says {answer}"


def hold(address, count, greeting=b""):
    """So many connections that say this and stay, or as many as the port takes without making them wait."""
    held = []
    for _ in range(count):
        began = time.monotonic()
        connection = socket.socket()
        connection.settimeout(1)
        try:
            connection.connect(address)
            connection.sendall(greeting)
        except OSError:
            connection.close()
        else:
            held.append(connection)
        if time.monotonic() - began > 0.5:
            break
    return held


def under_http_attack(checks, program, address, health_path, metric):
    kinds = {
        "idle connections": lambda: hold(address, IDLE),
        "half requests": lambda: hold(address, HALF, SCRAPE[:-9]),
        "slow readers": lambda: hold(address, SLOW, SCRAPE * 20),
    }
    held = []
    for what, begin in kinds.items():
        held += begin()
        checks.answered(f"{program} {health_path}, {what}", lambda: get(address, health_path, ""))
        checks.answered(f"{program} /metrics, {what}", lambda: get(address, "/metrics", metric))
    # They keep coming while it is asked.
    for _ in range(5):
        held += hold(address, 20)
        checks.answered(f"{program} {health_path}, more come", lambda: get(address, health_path, ""))
    for connection in held:
        connection.close()
    checks.answered(f"{program} {health_path}, afterwards", lambda: get(address, health_path, ""))


def under_watchers(checks, coordinator):
    channels = [grpc.insecure_channel(coordinator.health, options=[("grpc.use_local_subchannel_pool", 1)])
                for _ in range(WATCHERS)]
    streams = [channel.unary_stream(HEALTH + "Watch")(b"") for channel in channels]
    time.sleep(1)
    for _ in range(3):
        checks.answered(f"coordinator gRPC health, {WATCHERS} Watch streams", lambda: check(coordinator.health))
    for stream in streams:
        stream.cancel()
    for channel in channels:
        channel.close()
    idle = hold(coordinator.address("health"), IDLE)
    checks.answered("coordinator gRPC health, idle connections", lambda: check(coordinator.health))
    for connection in idle:
        connection.close()


def start_worker(folder, programs):
    """One whose coordinator is never there: its metrics port is open from the start."""
    folder.mkdir()
    (folder / "text").write_text("to be or not to be, that is the question. " * 2000)
    subprocess.run([programs / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", folder / "tokens",
                    folder / "text"], check=True, capture_output=True)
    log = folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", programs / "atoll-worker", "--coordinator", "127.0.0.1:1", "--name", "w0",
             "--data", folder / "tokens", "--state-dir", folder / "state", "--metrics-listen", "127.0.0.1:0"],
            stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (found := re.search(r"http://([0-9.]+):(\d+)/metrics", log.read_text(errors="replace"))):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the worker shows no metrics: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    return process, (found[1], int(found[2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--path", default="/healthz", help="what a liveness probe asks for")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.bin)
    if not (programs / "atoll-coordinator").exists():
        print(f"probes: no atoll-coordinator in {programs}: skipped")
        return 77
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-probes-"))
    checks = Checks()
    coordinator = worker = None
    try:
        coordinator = Coordinator(folder / "run", programs, more=["--health-listen", "127.0.0.1:0"])
        under_watchers(checks, coordinator)
        under_http_attack(checks, "coordinator", coordinator.address("metrics"), arguments.path, "atoll_workers")
        if (programs / "atoll-worker").exists():
            worker, address = start_worker(folder / "worker", programs)
            under_http_attack(checks, "worker", address, arguments.path, "atoll_worker_")
        else:
            print("no atoll-worker here (built without LibTorch)")
    finally:
        if worker is not None:
            worker.kill()
            worker.wait()
        if coordinator is not None:
            coordinator.stop()
        shutil.rmtree(folder)
    return 1 if checks.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
