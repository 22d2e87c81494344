#!/usr/bin/env python3
"""Attacks leave a trail, and cannot fill the log with it.

A coordinator with TLS that requires client certificates, another that requires tokens. Against them, from this machine:
plain text to the TLS ports, handshakes without a certificate, guessed tokens on both ports and on the web page. It must
show: the log names the attacker's address and the cause, and holds no token; it has some lines, not one for each attempt,
and all of them are JSON; the metrics count every failed handshake and every denied call.

Usage: attack_trail.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from hand_run import HandRun
from metrics_page import open_directly, page_text
from real_run import run_as_test

ANY_PORT = "127.0.0.1:0"
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = """run: {name: besieged, workers: 1, rounds: 10, seed: 3}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 0.005, batch: 2}
checkpoint: {shards: 1}
"""
HANDSHAKES, CALLS, WEB_REQUESTS = 40, 3, 3
GUESS = "atoll-guess-0123456789abcdef0123456789abcdef"
MOST_LINES = 40


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def plain_text(address):
    """The attacker's own address."""
    with socket.create_connection(split(address), timeout=5) as connection:
        own = connection.getsockname()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.settimeout(5)
        try:
            connection.recv(64)
        except OSError:
            pass
    return f"{own[0]}:{own[1]}"


def without_certificate(address):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(split(address), timeout=5) as connection:
        try:
            with context.wrap_socket(connection) as secured:
                secured.recv(64)  # with TLS 1.3 the refusal comes after the handshake
        except OSError:
            pass


def log_of(run, complaints):
    lines = []
    for line in (run.folder / "coordinator.log").read_text(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            complaints.append(f"a line of the log is not JSON: {line[:200]}")
            break
    return lines


def metric(run, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", page_text(run.metrics_address), re.MULTILINE)
    return float(found.group(1)) if found else -1.0


def eventually(done, seconds=10):
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
    return done()


def besiege_tls(run, folder, complaints):
    certs = folder / "certs"
    subprocess.run([ROOT / "scripts/dev-certs.sh", certs, "--coordinator", "--worker", "w0"], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    run.start_coordinator("--tls-cert", certs / "coordinator.pem", "--tls-key", certs / "coordinator.key", "--tls-ca",
                          certs / "ca.pem", "--metrics-listen", ANY_PORT)
    attacker = plain_text(run.data)
    for _ in range(HANDSHAKES):
        without_certificate(run.data)
        plain_text(run.admin)
    failed = 2 * HANDSHAKES + 1
    if not eventually(lambda: metric(run, "atoll_handshakes_failed_total") >= failed):
        complaints.append(f"{metric(run, 'atoll_handshakes_failed_total')} failed handshakes are counted of {failed}")
    trail = [line for line in log_of(run, complaints) if line.get("message") == "TLS handshake failed"]
    if not trail or trail[0]["peer"] != attacker or not trail[0].get("why"):
        complaints.append(f"the first handshake that failed was that of {attacker}; the log has {trail[:2]}")


def besiege_tokens(run, folder, complaints):
    (folder / "guess").write_text(GUESS)
    (folder / "guess").chmod(0o600)
    run.start_coordinator("--require-tokens", "--metrics-listen", ANY_PORT, "--web-listen", ANY_PORT)
    for _ in range(CALLS):
        for command in (["status"], ["run", "pause"]):
            run.credentials = ("--token-file", folder / "guess")
            if run.ctl(*command) is not None:
                complaints.append(f"a guessed token may {command}")
    for _ in range(WEB_REQUESTS):
        request = urllib.request.Request(f"http://{run.web_address}/api/v1/status", headers={"Authorization": f"Bearer {GUESS}"})
        try:
            open_directly(request)
            complaints.append("a guessed token opens the web page")
        except urllib.error.HTTPError:
            pass
    denied = 2 * CALLS + WEB_REQUESTS
    counted = metric(run, 'atoll_calls_refused_total{reason="unauthenticated"}')
    if counted < denied:
        complaints.append(f"{counted} denied calls are counted of {denied}")
    lines = log_of(run, complaints)
    for what in ("call denied", "web request denied"):
        trail = [line for line in lines if line.get("message") == what]
        if not trail or not trail[0]["peer"].startswith("127.0.0.1:") or not trail[0].get("why"):
            complaints.append(f"'{what}' has no trail: {trail[:2]}")


def measure(folder, programs):
    complaints = []
    for name, besiege in (("tls", besiege_tls), ("tokens", besiege_tokens)):
        run = HandRun(folder / name, programs, CONFIG)
        try:
            besiege(run, folder, complaints)
            text = (run.folder / "coordinator.log").read_text(errors="replace")
            if GUESS in text:
                complaints.append(f"the log of the coordinator with {name} has the token in it")
            if len(text.splitlines()) > MOST_LINES:
                complaints.append(f"the attacks wrote {len(text.splitlines())} lines: {text[-400:]}")
        finally:
            run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-trail-", __doc__, measure))
