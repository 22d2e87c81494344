#!/usr/bin/python3
"""A coordinator of the real program under attack, over real sockets.

After each attack it must still be there, serve a well-behaved worker and `atollctl status` at once, hold no more memory
than is stated here, and have counted what it turned away.

Usage: hostile.py --bin DIR [--short] [--only NAME] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 a program or python3-grpcio is not there.
"""
import argparse
import pathlib
import resource
import shutil
import socket
import sys
import tempfile
import time

try:
    import grpc
except ImportError:
    print("hostile: python3-grpcio is not installed: skipped")
    sys.exit(77)

import attacks
import wire
from coordinator import CHUNK, METHOD, MODEL_VALUES, Coordinator, GoodWorker
from traces import observers, observers_over_their_bound, questions

# Over what it held before, when an attack is over. gRPC keeps some of what it once had, and so does malloc.
MAY_GROW_MIB = 48
# While it goes on: beside that, what connections and streams that are open may take.
MAY_GROW_MEANWHILE_MIB = 160
GIVES_BACK_WITHIN_S = 5
SERVED_WITHIN_S = 5
HANDSHAKE_S = 10

Code = grpc.StatusCode


class Suite:
    def __init__(self, coordinator):
        self.coordinator = coordinator
        self.good = GoodWorker(coordinator)
        if self.good.member.seed_granted:
            self.good.seed()
            self.good.member = self.good.join()
        self.good.still_served()
        self.complaints = []
        self.before = self.highest = coordinator.rss_mib()

    def expect(self, holds, what):
        if not holds:
            self.complaints.append(what)

    def meanwhile(self):
        """In the middle of an attack: others are served, and memory is within its bound."""
        took = self.good.still_served()
        self.expect(took < SERVED_WITHIN_S, f"a worker waited {took:.1f} s meanwhile")
        self.highest = max(self.highest, self.coordinator.rss_mib())

    def grown(self, counters, prefix):
        now = self.coordinator.counters()
        return sum(value - counters.get(name, 0) for name, value in now.items() if name.startswith(prefix))

    def refused_more(self, counters, reason):
        return self.grown(counters, f'atoll_calls_refused_total{{reason="{reason}"}}')

    def settled_mib(self, before):
        """What it holds when it has had a moment to give back what an attack had filled."""
        deadline = time.monotonic() + GIVES_BACK_WITHIN_S
        while (after := self.coordinator.rss_mib()) - before >= MAY_GROW_MIB and time.monotonic() < deadline:
            time.sleep(0.1)
        return after

    def run(self, name, attack):
        before, self.complaints = self.coordinator.rss_mib(), []
        self.highest = before
        began = time.monotonic()
        attack(self)
        lasted = time.monotonic() - began
        served = self.good.still_served()
        self.coordinator.status()
        after = self.settled_mib(before)
        self.expect(served < SERVED_WITHIN_S, f"a worker waited {served:.1f} s afterwards")
        self.expect(after - before < MAY_GROW_MIB, f"it holds {after - before:.0f} MiB more than before")
        self.expect(self.highest - before < MAY_GROW_MEANWHILE_MIB,
                    f"it held {self.highest - before:.0f} MiB more meanwhile")
        print(f"{name:22} {lasted:5.1f} s   memory {before:6.1f} -> {max(self.highest, after):6.1f} -> {after:6.1f} MiB   "
              f"worker served in {served:.2f} s{''.join(f'{chr(10)}    FAILED: {c}' for c in self.complaints)}", flush=True)
        return not self.complaints


def garbage(suite):
    for port in ("data", "admin", "metrics"):
        attacks.garbage(suite.coordinator.address(port), 160)
    suite.meanwhile()


def silent_connections(suite):
    """More than there is room for, from another address than the good worker's."""
    coordinator = suite.coordinator
    counters = coordinator.counters()
    began = time.monotonic()
    made = attacks.half_open(coordinator.address(), 500, source="127.0.0.2")
    made += attacks.half_open(coordinator.address(), 300, attacks.PREFACE[:10], source="127.0.0.2")
    suite.meanwhile()
    coordinator.wait_for(lambda: suite.grown(counters, "atoll_connections_refused_total") >= 500, 10,
                         "500 of 800 connections to be refused")
    # A new worker finds room too: no one address has all of it.
    newcomer = GoodWorker(coordinator, "newcomer")
    newcomer.channel.close()
    open_files = coordinator.open_files()
    coordinator.wait_for(lambda: coordinator.open_files() < open_files - 200, 3 * HANDSHAKE_S,
                         "connections without a greeting to end")
    suite.expect(time.monotonic() - began < 3 * HANDSHAKE_S, "connections without a greeting stay")
    for connection in made:
        connection.close()


def half_a_greeting(suite):
    address = suite.coordinator.address("admin")
    made = attacks.half_open(address, 200, attacks.PREFACE + b"\0\0")
    suite.meanwhile()
    for connection in made:
        connection.close()


def http2_floods(suite):
    address = suite.coordinator.address()
    counters = suite.coordinator.counters()
    attacks.endless_headers(address, 200)
    suite.meanwhile()
    suite.expect(suite.grown(counters, 'atoll_connections_refused_total{limit="bytes"') == 1,
                 "an endless header block was not ended")
    attacks.control_floods(address, 100000)


def ping_floods(suite):
    """Nothing but control frames, each of which is answered: once on many connections, and then again and again, by
    somebody behind the good worker's own address."""
    coordinator = suite.coordinator
    made = attacks.half_open(coordinator.address(), 300, attacks.GREETING + attacks.pings(2000), source="127.0.0.2")
    for _ in range(3):
        suite.meanwhile()
    for connection in made:
        connection.close()
    flood = attacks.ReturningPings(coordinator.address(), 30, 2000, 10)
    began = time.monotonic()
    while time.monotonic() - began < 7:
        suite.meanwhile()
        time.sleep(0.2)
    neighbour = GoodWorker(coordinator, "neighbour")
    neighbour.channel.close()
    suite.expect(flood.goes_on(), f"a neighbour got in after {time.monotonic() - began - 7:.1f} s, when the flood was over")
    coordinator.wait_for(lambda: not flood.goes_on(), 10, "the flood to end")


def rapid_resets(suite):
    """One by one, and a page of frames at a time. Of a call that waits none is over before the next begins; of the others
    a server may get rid of as many as come, and then it is by its peak, also between two looks, that it is judged."""
    for port, at_once in (("data", 1), ("data", 2000), ("admin", 2000)):
        for path in attacks.FLOODED:
            counters = suite.coordinator.counters()
            suite.coordinator.forget_peak()
            attacks.rapid_reset(suite.coordinator.address(port), 200000, path, at_once)
            suite.meanwhile()
            suite.highest = max(suite.highest, suite.coordinator.peak_mib())
            ended = suite.grown(counters, 'atoll_connections_refused_total{limit="streams"')
            suite.expect(ended == 1 or port == "admin" or path != attacks.FLOODED[0],
                         f"a flood of {path} that is given up was not ended")


def long_metadata(suite):
    code = attacks.long_metadata(suite.coordinator)
    suite.expect(code not in (None, Code.DEADLINE_EXCEEDED), f"a megabyte of metadata ends with {code}")


def wrong_messages(suite):
    """Names of a megabyte, messages above the bound, texts that would be kept, and no messages at all."""
    counters = suite.coordinator.counters()
    long_text = "x" * 100_000
    requests = [wire.join_request("n" * (1 << 20), b"s" * 32), wire.join_request("n" * (3 << 20), b"s" * 32),
                wire.join_request("Not A Name", b"s" * 32), wire.join_request("ok", b""),
                wire.join_request("ok", b"s" * 32, fingerprint=long_text), b"\xff" * 1000, b"",
                wire.join_request("ok", b"s" * 32) + wire.field(6, wire.field(1, long_text))]
    codes = attacks.refusals(suite.coordinator, "Join", requests)
    suite.expect(Code.OK not in codes, f"one of them was taken: {codes}")
    suite.expect(suite.refused_more(counters, "invalid_argument") >= 4, "refusals were not counted")
    stranger = wire.Member("ghost", wire.field(2, "run") + wire.fixed64(3, 7))
    codes = attacks.refusals(suite.coordinator, "Heartbeat", [wire.field(1, stranger.reference)])
    suite.expect(Code.OK not in codes, "a stranger's heartbeat was taken")


def packed_messages(suite):
    """1.9 MB of gzip that is 1.9 GB."""
    for _ in range(3):
        size = attacks.packed_message(suite.coordinator.address(), 1900)
        suite.expect(size < 2 << 20, f"the attack is too large: {size}")
        suite.meanwhile()


def open_reflection(suite):
    """A synchronous service takes a thread for each of its streams."""
    threads = suite.coordinator.threads()
    with suite.coordinator.channel("admin") as channel:
        release, streams = attacks.open_streams(
            channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", 250)
        time.sleep(1)
        suite.meanwhile()
        now = suite.coordinator.threads()
        suite.expect(now - threads <= 40, f"{now - threads} threads more")
        release.set()
        for stream in streams:
            stream.cancel()


def watchers(suite):
    counters = suite.coordinator.counters()
    with suite.coordinator.channel() as channel:
        streams = [channel.unary_stream(METHOD + "WatchRun")(b"", timeout=30) for _ in range(200)]
        suite.coordinator.wait_for(lambda: suite.refused_more(counters, "over_budget") >= 100, 20,
                                   "watchers beyond the bound to be refused")
        suite.meanwhile()
        for stream in streams:
            stream.cancel()


def join_flood(suite):
    counters = suite.coordinator.counters()
    codes = attacks.join_flood(suite.coordinator, 3000)
    suite.expect(codes.get(Code.OK, 0) < 500, f"of 3000 joins at once too many were let in: {codes}")
    suite.expect(suite.refused_more(counters, "over_budget") > 2000, f"refusals were not counted: {codes}")
    time.sleep(3)  # the good worker is at the same address, which has used up its share


def huge_sizes(suite):
    counters = suite.coordinator.counters()
    member = suite.good.member
    for size in (0, 1 << 40, (1 << 63) + 5, MODEL_VALUES * 4 + 1):
        code, words = attacks.push_refused(suite.good.channel, [wire.push_header(member, 1, size)])
        suite.expect(code == Code.INVALID_ARGUMENT, f"a payload of {size} bytes ends with {code}: {words}")
    suite.expect(suite.refused_more(counters, "wrong_size") >= 3, "refusals were not counted")
    header = wire.push_header(member, 1, MODEL_VALUES * 4, sequence=7)
    code, words = attacks.push_refused(suite.good.channel, [header])
    suite.expect(code == Code.INVALID_ARGUMENT, f"another sequence ends with {code}: {words}")


def absurd_losses(suite):
    """One of them would be the mean of its round, and the scale of every plot."""
    base = suite.good.pull()
    for loss in (-1e300, 1e300, -1.0, 1e5):
        header = wire.push_header(suite.good.member, 1, MODEL_VALUES * 4, base=base, loss=loss)
        code, words = attacks.push_refused(suite.good.channel, [header])
        suite.expect(code == Code.INVALID_ARGUMENT and "mean_loss" in words, f"a loss of {loss} ends with {code}: {words}")


def bad_chunks(suite):
    counters = suite.coordinator.counters()
    header = wire.push_header(suite.good.member, 1, MODEL_VALUES * 4)
    data = bytes(1000)
    refused = {
        "a wrong crc": [header, wire.chunk(0, data, crc=1)],
        "an offset beyond": [header, wire.chunk(1 << 40, data)],
        "no header": [wire.chunk(0, data)],
        "two headers": [header, header],
        "an empty chunk": [header, wire.chunk(0, b"")],
        "a chunk above 1 MiB": [header, wire.chunk(0, bytes(CHUNK + 1))],
        "a bomb of 1 GiB": [header, wire.chunk(0, wire.zstd_bomb(8192), 0, 1, CHUNK)],
        "a bomb that says so": [header, wire.chunk(0, wire.zstd_bomb(8192), 0, 1, 1 << 30)],
        "no zstd": [header, wire.chunk(0, b"\x28\xb5\x2f\xfd" + data, 0, 1, 1000)],
        "an unknown compression": [header, wire.chunk(0, data, 0, 77, 1000)],
        "no protobuf": [b"\xff" * 100],
        "nothing": [],
    }
    for what, messages in refused.items():
        code, words = attacks.push_refused(suite.good.channel, messages)
        suite.expect(code in (Code.INVALID_ARGUMENT, Code.DATA_LOSS), f"{what} ends with {code}: {words}")
    suite.expect(suite.refused_more(counters, "bad_chunk") >= 2, "bad chunks were not counted")


def half_uploads(suite):
    """100 workers begin an upload, send a quarter, and stop. The budget has room for eight."""
    zeros = bytes(CHUNK)
    crc = wire.crc32c(zeros)
    members = []
    with suite.coordinator.channel() as channel:
        for i in range(100):
            request = wire.join_request(f"half-{i}", b"h" * 32, suite.good.hash)
            members.append(wire.Member(f"half-{i}", attacks.call_patiently(channel, "Join", request)))
    counters = suite.coordinator.counters()
    channels, calls, release = attacks.half_uploads(
        suite.coordinator, members, lambda member: wire.push_header(member, 1, MODEL_VALUES * 4, 1),
        [wire.chunk(at, zeros, crc) for at in (0, CHUNK)], 60)
    suite.coordinator.wait_for(lambda: suite.refused_more(counters, "over_budget") >= 90, 60,
                               "uploads beyond the budget to be refused")
    suite.meanwhile()
    release.set()
    for each in calls:
        each.cancel()
    for channel in channels:
        channel.close()


def slow_readers(suite):
    """Pulls whose windows are never opened: 8 MiB each, if they were copied."""
    address = suite.coordinator.address()
    request = wire.field(1, suite.good.member.reference) + wire.field(2, 0)
    message = b"\0" + len(request).to_bytes(4, "big") + request
    headers = attacks.request_headers(METHOD + "Pull")
    connections = []
    for _ in range(4):
        connection = attacks.connect(address)
        attacks.try_send(connection, attacks.PREFACE + attacks.frame(attacks.SETTINGS, 0, 0))
        for stream in range(1, 101, 2):
            attacks.try_send(connection, attacks.frame(attacks.HEADERS, attacks.END_HEADERS, stream, headers) +
                             attacks.frame(attacks.DATA, 1, stream, message))
        connections.append(connection)
    time.sleep(1)
    suite.meanwhile()
    for connection in connections:
        connection.close()


def metrics_port(suite):
    made = attacks.half_open(suite.coordinator.address("metrics"), 50)
    made += attacks.half_open(suite.coordinator.address("metrics"), 50, b"GET /metrics HTTP/1.1\r\nX: ")
    suite.meanwhile()
    for connection in made:
        connection.close()
    began = time.monotonic()
    suite.coordinator.counters()
    suite.expect(time.monotonic() - began < 25, "a scrape had to wait too long")


def a_round_still_closes(suite):
    """After all of it: the good worker's contribution makes the next version."""
    base = suite.good.pull()
    suite.good.push_zeros(base)
    suite.coordinator.status()
    suite.expect(suite.good.pull() in (base, base + 1), "the head is neither the base nor the next")


def wrong_positions(suite):
    """A topk payload of the right size whose positions cannot be: refused, and nothing of it is kept."""
    size = topk64_bytes(MODEL_VALUES)
    for byte in (0xFF, 0x00, 0x5A):
        payload = bytes([byte]) * size
        header = wire.push_header(suite.good.member, 8, size, wire.crc32c(payload))
        messages = [header] + [wire.chunk(at, payload[at:at + CHUNK]) for at in range(0, size, CHUNK)]
        code, words = attacks.push_refused(suite.good.channel, messages)
        suite.expect(code == Code.INVALID_ARGUMENT, f"positions of {byte:#x} end with {code}: {words}")


def topk64_bytes(values):
    """docs/reference/codecs.md: of each 4096 values 64 positions, two levels, and two bits a value."""
    low_bits = 6
    upper = (64 + 64 + 7) // 8
    return values // 4096 * (upper + 64 * low_bits // 8 + 8 + 64 * 2 // 8)


def huge_seed(folder, programs):
    """Who is granted to seed announces a model of terabytes, in a codec that makes it small on the wire."""
    coordinator = Coordinator(folder, programs, "topk64", budget_mib=1 << 20)
    try:
        manifest, manifest_hash = wire.manifest("w", [1 << 38])
        with coordinator.channel() as channel:
            member = wire.Member("seeder", attacks.call(channel, "Join", wire.join_request("seeder", b"s" * 32,
                                                                                          manifest_hash)))
            before = coordinator.rss_mib()
            header = wire.field(1, wire.field(1, member.reference) + wire.field(2, manifest))
            first = wire.field(3, 0) + wire.field(4, bytes(1000)) + wire.fixed32(5, wire.crc32c(bytes(1000)))
            try:
                channel.stream_unary(METHOD + "SeedParameters")(iter([header, first]), timeout=20)
                code = Code.OK
            except grpc.RpcError as error:
                code = error.code()
        coordinator.status()
        grew = coordinator.rss_mib() - before
        print(f"a seed of a terabyte ends with {code}, {grew:.1f} MiB more")
        return code not in (Code.OK, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE) and grew < MAY_GROW_MIB
    finally:
        coordinator.stop()


def few_files(folder, programs):
    """As started from a shell that allows 1024 open files, with more connections than that."""
    coordinator = Coordinator(folder, programs, open_files=1024, max_connections=4096)
    try:
        made = attacks.half_open(coordinator.address(), 1200, source="127.0.0.2")
        made += attacks.half_open(coordinator.address("admin"), 600, source="127.0.0.3")
        time.sleep(1)
        good = GoodWorker(coordinator)
        coordinator.status()
        open_files = coordinator.open_files()
        for connection in made:
            connection.close()
        good.heartbeat()
        print(f"of 1024 files {open_files} were open under 1800 connections")
        return open_files < 1024 - 400
    finally:
        coordinator.stop()


def many_names(folder, programs):
    """30,000 workers that joined and left: remembering them costs an idle coordinator no processor time."""
    # In memory: each Join waits for the disk, and it is not the disk that is looked at here.
    in_memory = tempfile.TemporaryDirectory(dir="/dev/shm")
    coordinator = Coordinator(pathlib.Path(in_memory.name) / folder.name, programs, joins_per_s=100000)
    try:
        def idle_share(seconds=5):
            used, began = coordinator.cpu_seconds(), time.monotonic()
            time.sleep(seconds)
            return (coordinator.cpu_seconds() - used) / (time.monotonic() - began)

        without = idle_share()
        attacks.join_and_leave(coordinator, 30000)
        time.sleep(2)
        remembering = idle_share()
        print(f"idle: {without:.1%} of a processor, and {remembering:.1%} with 30,000 names remembered")
        return remembering < without + 0.05
    finally:
        coordinator.stop()
        in_memory.cleanup()


ATTACKS = [garbage, silent_connections, half_a_greeting, http2_floods, ping_floods, rapid_resets, long_metadata, wrong_messages,
           packed_messages, open_reflection, watchers, huge_sizes, absurd_losses, bad_chunks, half_uploads, slow_readers, metrics_port,
           join_flood, a_round_still_closes]


# Each with a coordinator of its own.
SCENARIOS = [huge_seed, few_files, observers, observers_over_their_bound, questions, many_names]
# What takes longer than a few seconds.
LENGTHY = [silent_connections, http2_floods, ping_floods, rapid_resets, half_uploads, metrics_port, few_files, many_names]


def run_all(folder, programs, wanted):
    good = True
    coordinator = Coordinator(folder / "fp32", programs)
    try:
        suite = Suite(coordinator)
        for attack in ATTACKS:
            if wanted(attack):
                good = suite.run(attack.__name__, attack) and good
    finally:
        good = coordinator.stop() == 0 and good
    if wanted(wrong_positions):
        coordinator = Coordinator(folder / "topk", programs, "topk64")
        try:
            good = Suite(coordinator).run("wrong_positions", wrong_positions) and good
        finally:
            good = coordinator.stop() == 0 and good
    for scenario in SCENARIOS:
        if wanted(scenario) and not scenario(folder / scenario.__name__, programs):
            print(f"    FAILED: {scenario.__name__}")
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    parser.add_argument("--short", action="store_true", help="without what takes longer than a few seconds")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.bin)
    if not (programs / "atoll-coordinator").exists():
        print(f"hostile: no atoll-coordinator in {programs}: skipped")
        return 77
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    socket.setdefaulttimeout(20)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-hostile-"))
    try:
        def wanted(attack):
            return arguments.only in (None, attack.__name__) and not (arguments.short and attack in LENGTHY)

        return 0 if run_all(folder, programs, wanted) else 1
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
