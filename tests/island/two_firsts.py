#!/usr/bin/env python3
"""Rank 0 on two hosts by mistake: the second of them exits with code 2, and the first still takes its rank 1. Then a rank 0 whose
address leads to a program on another host, which is silent, closes each connection, or speaks HTTP: it tries for its patience, says what
it finds, and ends when it is asked to.

Each host is a network of its own (unshare), joined by a pair of interfaces.

Usage: two_firsts.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there, or unshare may not make namespaces.
"""
import os
import signal
import subprocess
import sys
import time

from bad_ranks import Attempts, said_until
from island_run import run_as_test, tokenize_foxes

ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
INSIDE = "ATOLL_TEST_HAS_OWN_NETWORK"
FIRST_HOST, OTHER_HOST, PORT = "10.77.0.1", "10.77.0.2", 29500
WRONG_PORTS = {"silent": 29601, "closes": 29602, "http": 29603}
ENDS_S = 20  # from SIGTERM on: some 5 s, and more on a busy machine

# Programs on the other host, each at its port.
WRONG_PROGRAMS = """
import socket, sys, threading
def serve(how, port):
    listener = socket.create_server((sys.argv[1], port))
    kept = []
    while True:
        one = listener.accept()[0]
        if how == "http":
            one.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
        if how == "closes":
            one.close()
        else:
            kept.append(one)
for how, port in """ + repr(list(WRONG_PORTS.items())) + """:
    threading.Thread(target=serve, args=(how, port)).start()
print("ready", flush=True)
"""


def join(other):
    """This network with that of the process `other`."""
    inside = f"nsenter --net=/proc/{other}/ns/net"
    while os.readlink(f"/proc/{other}/ns/net") == os.readlink("/proc/self/ns/net"):
        pass  # until unshare has become sleep
    for command in ("ip link set lo up", f"ip link add to-other type veth peer name eth0 netns {other}",
                    f"ip address add {FIRST_HOST}/30 dev to-other", "ip link set to-other up", f"{inside} ip link set lo up",
                    f"{inside} ip address add {OTHER_HOST}/30 dev eth0", f"{inside} ip link set eth0 up"):
        subprocess.run(command.split(), check=True)


def start_rank(tries, rank, prefix=()):
    return tries.start("--device", "cpu", "--island", f"{FIRST_HOST}:{PORT}", "--world-size", "2", "--rank", str(rank), prefix=prefix)


def start_wrong(tries, how, timeout):
    return tries.start("--device", "cpu", "--island", f"{OTHER_HOST}:{WRONG_PORTS[how]}", "--world-size", "2", "--rank", "0",
                       "--rank-timeout", timeout, name=f"{how}-{timeout}")


def own_address_is_wrong(tries, inside):
    with subprocess.Popen([*inside, sys.executable, "-c", WRONG_PROGRAMS, OTHER_HOST], stdout=subprocess.PIPE, text=True) as wrong:
        wrong.stdout.readline()
        asked = {how: start_wrong(tries, how, "60") for how in WRONG_PORTS}
        for how, process in asked.items():
            said = said_until(process, "waits for its own address")
            process.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            tries.expect(f"SIGTERM while its address is {how}", process, 130, "was asked to end while it waited for its own address")
            if time.monotonic() - begin > ENDS_S or "cause=" not in said:
                tries.complaints.append(f"SIGTERM while its address is {how}: {time.monotonic() - begin:.1f} s: {said[-1000:]}")
        giving_up = {how: start_wrong(tries, how, "1") for how in WRONG_PORTS}
        causes = {"silent": "does not answer", "closes": "within 10 s: ", "http": "response is expected"}
        for how, process in giving_up.items():
            tries.expect(f"its address is {how}", process, 3, f"has not reached it at {OTHER_HOST}:{WRONG_PORTS[how]}", causes[how], "MASTER_ADDR")
        wrong.kill()


def measure(folder, programs):
    tries = Attempts(folder, programs, tokenize_foxes(programs, folder))
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as other:
        join(other.pid)
        own_address_is_wrong(tries, ("nsenter", f"--net=/proc/{other.pid}/ns/net"))
        ranks = [start_rank(tries, 0)]
        said = said_until(ranks[0], "waits for rank 1 of 2")
        tries.expect("rank 0 on another host", start_rank(tries, 0, ("nsenter", f"--net=/proc/{other.pid}/ns/net")), 2,
                     "rank 0 is there twice", f"{FIRST_HOST}:{PORT}", "--island")
        ranks.append(start_rank(tries, 1))
        said += said_until(ranks[0], "waiting for the coordinator")
        if "waiting for the coordinator" not in said:
            tries.complaints.append(f"the first rank 0 has not taken rank 1: {said[-2000:]}")
        for process in ranks:
            process.kill()
            process.communicate()
        other.kill()
    return tries.complaints


def isolation_works():
    try:
        return subprocess.run([*ISOLATED, "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    if INSIDE in os.environ:
        sys.exit(run_as_test("atoll-two-firsts-", __doc__, measure))
    if not isolation_works():
        print("skipped: unshare may not make namespaces here, or ip is not installed (scripts/setup.sh)")
        sys.exit(77)
    sys.exit(subprocess.run([*ISOLATED, sys.executable, "-B", *sys.argv], env={**os.environ, INSIDE: "yes"}, check=False).returncode)
