#!/usr/bin/env python3
"""What an island refuses: each with the exit code, both values or the place named, and what to do.

Usage: bad_ranks.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import concurrent.futures
import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from island_run import IslandRun, config, run_as_test, tokenize, tokenize_foxes

PATIENCE_S = 90


class Attempts:
    def __init__(self, folder, programs, tokens):
        self.folder, self.programs, self.tokens, self.complaints = folder, programs, tokens, []

    def start(self, *more, variables=None, tokens=None, name="bad", prefix=()):
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1", **(variables or {}))
        return subprocess.Popen(
            [*prefix, "setpriv", "--pdeathsig", "KILL", self.programs / "atoll-worker", "--coordinator", "127.0.0.1:1", "--name", name,
             "--data", tokens or self.tokens, "--state-dir", self.folder / f"state-{name}", "--threads", "1", *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=environment)

    def expect(self, what, process, code, *words):
        try:
            said = process.communicate(timeout=PATIENCE_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0]
            self.complaints.append(f"{what}: still runs after {PATIENCE_S} s: {said[-1000:]}")
            return
        missing = [word for word in words if word not in said]
        if process.returncode != code or missing:
            self.complaints.append(f"{what}: exit code {process.returncode} (expected {code}), without {missing}: {said[-1000:]}")

    def refuse(self, what, words, *more, variables=None, code=2):
        self.expect(what, self.start(*more, variables=variables), code, *words)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def torchrun(rank, size, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def command_lines(tries):
    tries.refuse("no world size", ["--world-size"], "--island", "127.0.0.1:4000", "--rank", "0")
    tries.refuse("no address", ["--island HOST:PORT"], "--rank", "0", "--world-size", "2")
    tries.refuse("rank too high", ["rank 2", "world size of 2", "0 to 1"], "--island", "127.0.0.1:4000", "--rank", "2",
                 "--world-size", "2")
    tries.refuse("two ways", ["--ranks", "--island"], "--ranks", "2", "--island", "127.0.0.1:4000")
    tries.refuse("port 0", ["port is 0"], "--island", "127.0.0.1:0", "--rank", "0", "--world-size", "2")
    tries.refuse("half of torchrun", ["MASTER_ADDR", "MASTER_PORT"], variables={"RANK": "0", "WORLD_SIZE": "2"})
    tries.refuse("empty address", ["MASTER_ADDR is empty"], variables={**torchrun(1, 2, 4000), "MASTER_ADDR": ""})
    tries.refuse("no number", ["WORLD_SIZE", "'two'"], variables={**torchrun(0, 2, 4000), "WORLD_SIZE": "two"})
    tries.refuse("torchrun and --ranks", ["--ranks", "torchrun"], "--ranks", "2", variables=torchrun(0, 2, 4000))
    tries.refuse("no CUDA", ["device 'cuda'", "has no CUDA"], "--ranks", "2", "--device", "cuda")
    tries.refuse("no device", ["gpu", "cuda:N"], "--ranks", "2", "--device", "gpu")
    tries.refuse("device number", ["cuda:1", "each takes a device of its own"], "--ranks", "2", "--device", "cuda:1")


def disagreements(tries, folder, programs):
    port = free_port()
    first = tries.start("--island", f"127.0.0.1:{port}", "--rank", "0", "--world-size", "2", "--device", "cpu")
    tries.refuse("world size", ["the world size", "has 2", "has 3", "WORLD_SIZE"], "--island", f"127.0.0.1:{port}", "--rank", "1",
                 "--world-size", "3", "--device", "cpu")
    tries.expect("world size, rank 0", first, 2, "the world size", "has 2", "has 3")

    (folder / "other").write_text("another text for another fingerprint\n" * 3000)
    others = tokenize(programs, folder / "other", folder / "others")
    port = free_port()
    first = tries.start("--device", "cpu", variables=torchrun(0, 2, port))
    tries.expect("data", tries.start("--device", "cpu", variables=torchrun(1, 2, port), tokens=others), 2,
                 "the data's fingerprint", "same token files")
    tries.expect("data, rank 0", first, 2, "the data's fingerprint")

    port = free_port()
    ranks = [tries.start("--device", "cpu", variables=torchrun(rank, 3, port)) for rank in (0, 1, 1)]
    tries.expect("a rank twice", ranks[0], 2, "rank 1 is there twice", "a rank of its own")
    for other in ranks[1:]:
        tries.expect("a rank twice, rank 1", other, 2, "rank 1 is there twice")


def absences(tries):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        tries.refuse("port in use", [str(port), "another process uses it", "MASTER_PORT"], "--device", "cpu",
                     variables=torchrun(0, 2, port), code=3)
    port = free_port()
    tries.refuse("missing ranks", ["waits for ranks 1, 2 of 3", "ranks 1, 2 of 3 did not come within 10 s", "127.0.0.1 means each host itself"],
                 "--device", "cpu", "--rank-timeout", "1", variables=torchrun(0, 3, port), code=3)
    tries.refuse("no rank 0", ["waits for rank 0", "rank 0 has not come", "Connection refused", "MASTER_ADDR"], "--device", "cpu", "--rank-timeout", "1",
                 variables=torchrun(1, 2, port), code=3)
    tries.refuse("unknown host of rank 0", ["rank 0 has not come", "cannot look up no-such-host.invalid", "MASTER_ADDR"], "--device", "cpu",
                 "--rank-timeout", "1", "--island", f"no-such-host.invalid:{port}", "--rank", "1", "--world-size", "2", code=3)
    tries.refuse("unknown host", ["waits for its own address", "cannot look up no-such-host.invalid", "has not reached it at no-such-host.invalid", "MASTER_ADDR"], "--device",
                 "cpu", "--rank-timeout", "1", "--island", f"no-such-host.invalid:{port}", "--rank", "0", "--world-size", "2", code=3)


def said_until(process, words):
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    return said


def asked_to_end(tries):
    """SIGTERM ends a rank that waits for the others, long before it gives up."""
    port = free_port()
    for rank, waits_for in ((0, "waits for rank 1"), (1, "waits for rank 0")):
        process = tries.start("--device", "cpu", variables=torchrun(rank, 2, port))
        said = said_until(process, waits_for)
        begin = time.monotonic()
        process.terminate()
        tries.expect(f"SIGTERM while rank {rank} waits", process, 130, "was asked to end while it waited")
        took = time.monotonic() - begin
        print(f"rank {rank} ended {took:.1f} s after SIGTERM")
        if waits_for not in said or took > PATIENCE_S / 2:
            tries.complaints.append(f"SIGTERM while rank {rank} waits: {took:.1f} s, it said before: {said[-1000:]}")


def comes_again(tries):
    """A rank that ends while the island gathers may come again."""
    port = free_port()
    first, one = (tries.start("--device", "cpu", variables=torchrun(rank, 3, port)) for rank in (0, 1))
    processes = [first, one]
    said = said_until(first, "waits for rank 2 of 3")
    one.kill()
    for rank in (1, 2):
        processes.append(tries.start("--device", "cpu", variables=torchrun(rank, 3, port)))
    said += said_until(first, "waiting for the coordinator")
    if "rank 1 has ended again" not in said or "is there twice" in said:
        tries.complaints.append(f"a rank that comes again: {said[-2000:]}")
    for process in processes:
        process.kill()
        process.communicate()


def a_store_that_ends(tries):
    """A rank that finds the store of a rank 0 that is ending waits for the next rank 0. An ending process, until the kernel closes its
    files, takes connections that nobody serves, and then resets them."""
    with socket.socket() as ending:
        ending.bind(("127.0.0.1", 0))
        ending.listen()
        port = ending.getsockname()[1]
        one = tries.start("--device", "cpu", "--rank-timeout", "10", variables=torchrun(1, 2, port))
        select.select([ending], [], [], PATIENCE_S)
        time.sleep(1)
    first = tries.start("--device", "cpu", "--rank-timeout", "10", variables=torchrun(0, 2, port))
    said = said_until(first, "waiting for the coordinator")
    if "waiting for the coordinator" not in said or one.poll() is not None:
        tries.complaints.append(f"a store that ends: rank 1 exits with {one.poll()}, rank 0 says {said[-1000:]}")
    for process in (first, one):
        process.kill()
        process.communicate()


def another_program_answers(tries):
    """At the address of the store: it resets each connection, at once or later."""
    for read in (0, 1, 100):
        with socket.socket() as other, concurrent.futures.ThreadPoolExecutor(1) as pool:
            other.bind(("127.0.0.1", 0))
            other.listen()
            process = tries.start("--device", "cpu", "--rank-timeout", "1", variables=torchrun(1, 2, other.getsockname()[1]))
            what = f"another program that reads {read} bytes"
            # It is read meanwhile: newer PyTorches print a backtrace for each connection.
            ended = pool.submit(tries.expect, what, process, 3, "is not the store of this island", "MASTER_ADDR")
            other.settimeout(0.2)
            while not ended.done():
                try:
                    one = other.accept()[0]
                except TimeoutError:
                    continue
                one.settimeout(1)
                with contextlib.suppress(TimeoutError):  # of a store's two connections, one says nothing
                    one.recv(read)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()
            ended.result()


class Proxy:
    """In front of a port, which may be away: then it closes what connects."""

    def __init__(self, behind):
        self.behind, self.is_there, self.connections = behind, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                one = self.listener.accept()[0]
                if not self.is_there:
                    one.close()
                    continue
                other = socket.create_connection(("127.0.0.1", self.behind))
                ways = [threading.Thread(target=self._pass_on, args=way, daemon=True) for way in ((one, other), (other, one))]
                self.connections.append(ways[0])
                for way in ways:
                    way.start()

    @staticmethod
    def _pass_on(source, target):
        with contextlib.suppress(OSError):
            while (some := source.recv(65536)):
                target.sendall(some)
            target.shutdown(socket.SHUT_RDWR)

    def left(self):
        """How many of the connections that it has passed on are not closed yet."""
        return sum(one.is_alive() for one in self.connections)


def seconds_used(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def behind_a_proxy(tries):
    """The way to the store may close connections. A rank that waits takes that for a rank 0 that ends and uses no processor; and a formed
    island keeps no connection that may be closed."""
    port = free_port()
    first = tries.start("--device", "cpu", "--rank-timeout", "20", variables=torchrun(0, 2, port))
    said_until(first, "waits for rank 1")
    proxy = Proxy(port)
    one = tries.start("--device", "cpu", "--rank-timeout", "20", variables=torchrun(1, 2, proxy.port))
    said = said_until(one, "waits for rank 0")
    time.sleep(1)
    used = seconds_used(one)
    time.sleep(4)
    used = seconds_used(one) - used
    proxy.is_there = True
    said += said_until(one, "follows rank 0")
    said_until(first, "waiting for the coordinator")
    deadline = time.monotonic() + PATIENCE_S
    while proxy.left() > 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    print(f"a rank behind a proxy that closes connections used {used:.2f} s in 4 s; the formed island has {proxy.left()} of "
          f"{len(proxy.connections)} connections to the store")
    proxy.listener.close()
    if "follows rank 0" not in said or used > 2 or proxy.left() > 0 or not proxy.connections:
        tries.complaints.append(f"behind a proxy: {used:.2f} s used, {proxy.left()} connections are left: {said[-1000:]}")
    for process in (one, first):
        process.kill()
        process.communicate()


def half_a_message(tries):
    """What a connection to the store's port begins to send and never ends must not keep rank 0 from ending."""
    port = free_port()
    process = tries.start("--device", "cpu", variables=torchrun(0, 2, port))
    said_until(process, "waits for rank 1")
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"\0\x20\0\0\0\0\0\0\0\0atoll")
        time.sleep(1)
        process.terminate()
        tries.expect("half a message on the store's port", process, 130, "was asked to end while it waited")


def gives_up(tries):
    process = tries.start("--ranks", "2", "--device", "cpu", "--rank-timeout", "1", "--max-restarts", "1",
                          variables={"ATOLL_TEST_UNUSED": "1"})
    # Without a coordinator the ranks wait for it. Each life of rank 1 is ended.
    run = IslandRun(tries.folder / "gives-up", tries.programs, config())
    run.workers_by_name["bad"] = process
    killed = set()
    while process.poll() is None:
        rank = run.ranks("bad").get(1)
        if rank is not None and rank not in killed:
            killed.add(rank)
            os.kill(rank, 9)
    tries.expect("restarts", process, 3, "giving up", "rank=1", "killed by signal 9")


def too_many_ranks(tries):
    run = IslandRun(tries.folder / "limit", tries.programs, config())
    try:
        run.start_coordinator("--max-ranks", "1")
        island = run.start_island("w0", tries.tokens, 2)
        code = island.wait(PATIENCE_S)
        if code != 2 or "--max-ranks 2" not in run.log("w0"):
            tries.complaints.append(f"too many ranks: exit code {code}: {run.log('w0')[-1500:]}")
    finally:
        run.kill_all()


def measure(folder, programs):
    tries = Attempts(folder, programs, tokenize_foxes(programs, folder))
    command_lines(tries)
    disagreements(tries, folder, programs)
    absences(tries)
    asked_to_end(tries)
    comes_again(tries)
    half_a_message(tries)
    behind_a_proxy(tries)
    a_store_that_ends(tries)
    another_program_answers(tries)
    gives_up(tries)
    too_many_ranks(tries)
    return tries.complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-bad-ranks-", __doc__, measure))
